#pragma once

#include <plait/actors/error.hpp>
#include <plait/actors/ref.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plait {

/// How an actor has ended.
struct drained {
    std::string actor;         ///< its type and its number: "cache #3"
    std::uint64_t dropped = 0; ///< messages that were waiting and were not run
    bool gone = true;          ///< false: a method has not ended yet although it was asked to
};

namespace detail {

/// Whoever calls it keeps the core.
task<drained> drain(actor_core& core, clock& time, time_point end_of_draining, time_point end_of_waiting);

} // namespace detail

/// `co_await drain(r, clock, limit)`: the actor takes no more messages, runs those that wait, and stops when nothing is
/// left to do. After `limit` it is stopped: what waits is dropped (asks end with `errc::receiver_gone`), and its
/// methods are asked to stop and joined. Like stop(), not cancelled by the caller's stop, and not for a method of the
/// actor itself.
template<class A>
task<drained> drain(ref<A> target, clock& time, duration limit)
{
    if (!target) throw error(errc::invalid_argument, "drained an empty ref");
    auto const end = detail::later(time.now(), limit);
    co_return co_await detail::drain(*detail::ref_access::core(target), time, end, time_point::max());
}

struct shutdown_limits {
    /// For all that waits to be run.
    duration draining = std::chrono::seconds(10);
    /// For methods to end after that, when they were asked to stop.
    duration stopping = std::chrono::seconds(10);
};

/// Ends all actors of `home`, in order: the youngest first, so children before their supervisors and users before
/// what they were given to use; each is drained before the next. Gives one entry for each actor that dropped messages
/// or has not gone in time; that one is joined by the runtime's destructor. Awaited by a task that is not an actor's.
task<std::vector<drained>> shutdown(runtime& home, shutdown_limits limits = {});

} // namespace plait
