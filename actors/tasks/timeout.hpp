#pragma once

#include <plait/actors/tasks/task_member.hpp>
#include <plait/actors/time/clock.hpp>

namespace plait {

namespace detail {

/// A sleep that a stop ends without an exception: true when the time has passed.
task<bool> sleep(clock& c, duration limit);
task<bool> sleep(clock& c, time_point due);

/// Throws `errc::deadline_exceeded` if it was the timer that stopped the task. The caller's own stop goes first.
void check_deadline(bool timer_decided, std::exception_ptr const& failure, stop_token caller);

template<class T>
task<T> end_with_timer(task<bool> timer, task<T> t)
{
    auto& context = co_await current_context();
    deciding_group g(context, deciding_group::decides::first_end);
    member<bool> limit(std::move(timer));
    member<T> body(std::move(t));
    limit.start_in(g); // first, so that the task's first step counts
    body.start_in(g);
    co_await g.join();
    check_deadline(g.decider() == &limit, body.outcome().failure(), context.stop);
    co_return std::move(body.outcome()).value();
}

} // namespace detail

/// Runs `t` (a task, or what becomes one, like an ask), asks it to stop when `limit` has passed since the await, and
/// joins it in any case. Throws `errc::deadline_exceeded`, which equals `std::errc::timed_out`, when that stop ended
/// it; otherwise gives its outcome: a value that came all the same is not lost. The caller's stop reaches `t` as ever
/// and stays `errc::cancelled`.
template<detail::taskable T>
task<typename T::value_type> timeout(clock& c, duration limit, T t)
{
    return detail::end_with_timer(detail::sleep(c, limit), task<typename T::value_type>(std::move(t)));
}

/// The same with a point in time.
template<detail::taskable T>
task<typename T::value_type> timeout(clock& c, time_point due, T t)
{
    return detail::end_with_timer(detail::sleep(c, due), task<typename T::value_type>(std::move(t)));
}

} // namespace plait
