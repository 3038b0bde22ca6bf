#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

/// The workloads on plait. Each makes what it needs, warms up, does `n` operations and checks what they gave.
namespace plait::bench::with_plait {

/// How long the loops of `ask_across` look for works before they park: longer than any wait of theirs.
inline constexpr duration spin = std::chrono::milliseconds(100);

/// A method of an actor awaits a child task.
sample await_child(std::int64_t n);
/// An actor asks another one that lives on the same thread.
sample ask_beside(std::int64_t n);
/// An actor asks one that lives on another loop and processor; both loops spin.
sample ask_across(std::int64_t n);
/// The same, both loops sleep.
sample ask_asleep(std::int64_t n);
/// Spawns an actor, stops it and waits until it is gone.
sample spawn_and_stop(std::int64_t n);
/// 4 coroutines send to 4 others through a channel of 64; one operation is one value.
sample many_to_many(std::int64_t n);
/// The same, the senders on one thread and the receivers on another.
sample many_to_many_across(std::int64_t n);

/// 4 actors tell one, as fast as its mailbox lets them; one operation is one message. Order and bound are checked.
sample flood(std::int64_t n);
/// A tree of n tasks, or of n actors, on one thread; one operation is one leaf.
sample tree_of_tasks(std::int64_t n);
sample tree_of_actors(std::int64_t n);
/// Bytes of an idle actor that holds a number.
sample idle_actor(std::int64_t n);
/// n tasks wait for a channel's next value in a scope, which is asked to stop; from there to the end of the last. Their
/// waits give a result, or throw.
sample cancel_results(std::int64_t n);
sample cancel_throwing(std::int64_t n);
/// n tasks sleep for an hour and are cancelled; from the first that starts to the last that ends.
sample arm_and_cancel(std::int64_t n);
/// n tasks sleep until about the same moment. Arming them and, from that moment, resuming them.
sample arm_and_fire(std::int64_t n);
/// Milliseconds of processor time in two seconds in which n tasks sleep.
sample wait_with_timers(std::int64_t n);

} // namespace plait::bench::with_plait
