#pragma once

#include <plait/actors/tasks/task_member.hpp>

#include <tuple>

namespace plait {

namespace detail {

template<class... Ts>
task<std::tuple<value_of<Ts>...>> all_of(task<Ts>... tasks)
{
    deciding_group g(co_await current_context(), deciding_group::decides::first_failure);
    std::tuple<member<Ts>...> members(std::move(tasks)...);
    std::apply([&](auto&... m) { (m.start_in(g), ...); }, members);
    co_await g.join();
    if (g.failure()) std::rethrow_exception(g.failure());
    co_return std::apply([](auto&... m) { return std::tuple<value_of<Ts>...>(take_value(m)...); }, members);
}

template<class T>
task<std::vector<value_of<T>>> all_of(std::vector<member<T>> members)
{
    deciding_group g(co_await current_context(), deciding_group::decides::first_failure);
    for (auto& m : members) {
        m.start_in(g);
    }
    co_await g.join();
    if (g.failure()) std::rethrow_exception(g.failure());
    std::vector<value_of<T>> values;
    values.reserve(members.size());
    for (auto& m : members) {
        values.push_back(take_value(m));
    }
    co_return values;
}

} // namespace detail

/// Runs tasks side by side and gives all their values as a tuple (std::monostate for void, std::reference_wrapper for a
/// reference). When one fails the rest are asked to stop, and the first failure is thrown when all have ended.
template<detail::taskable... Ts>
task<std::tuple<detail::value_of<typename Ts::value_type>...>> when_all(Ts... tasks)
{
    return detail::all_of(task<typename Ts::value_type>(std::move(tasks))...);
}

/// The same for a range of tasks, which it takes: a vector of the values, in the order of the tasks.
template<class R>
    requires detail::task_range<R>
task<std::vector<detail::value_of<detail::range_value<R>>>> when_all(R&& tasks)
{
    return detail::all_of(detail::members_of(tasks));
}

} // namespace plait
