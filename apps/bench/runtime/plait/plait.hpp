#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

/// The workloads on plait. Each makes what it needs, warms up, does `n` operations and checks what they gave.
namespace plait::bench::with_plait {

/// A method of an actor awaits a child task.
sample await_child(std::int64_t n);
/// An actor asks another one that lives on the same thread.
sample ask_beside(std::int64_t n);
/// An actor asks one that lives on another loop; both loops spin.
sample ask_across(std::int64_t n);
/// The same, both loops sleep.
sample ask_asleep(std::int64_t n);
/// Spawns an actor, stops it and waits until it is gone.
sample spawn_and_stop(std::int64_t n);
/// 4 coroutines send to 4 others through a channel of 64; one operation is one value.
sample many_to_many(std::int64_t n);
/// The same, two senders and two receivers on each of two threads.
sample many_to_many_across(std::int64_t n);

} // namespace plait::bench::with_plait
