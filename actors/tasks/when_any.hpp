#pragma once

#include <plait/actors/tasks/task_member.hpp>

#include <optional>
#include <tuple>
#include <utility>
#include <variant>

namespace plait {

/// Which task of a range ended first, and its value.
template<class T>
struct first_of {
    first_of(std::size_t i, T v)
        : index(i)
        , value(std::move(v))
    {
    }
    std::size_t index;
    T value;
};

namespace detail {

/// The value of the member that decided, as the alternative with its number.
template<class... Ts, std::size_t... Is>
std::variant<value_of<Ts>...> decided(std::tuple<member<Ts>...>& members, member_base const* decider,
                                      std::index_sequence<Is...>)
{
    std::optional<std::variant<value_of<Ts>...>> value;
    auto pick = [&]<std::size_t I>(std::in_place_index_t<I> at) {
        auto& m = std::get<I>(members);
        if (&m == decider) value.emplace(at, take_value(m));
    };
    (pick(std::in_place_index<Is>), ...);
    return std::move(*value);
}

template<class... Ts>
task<std::variant<value_of<Ts>...>> any_of(task<Ts>... tasks)
{
    deciding_group g(co_await current_context(), deciding_group::decides::first_end);
    std::tuple<member<Ts>...> members(std::move(tasks)...);
    std::apply([&](auto&... m) { (m.start_in(g), ...); }, members);
    co_await g.join();
    if (g.failure()) std::rethrow_exception(g.failure());
    co_return decided(members, g.decider(), std::index_sequence_for<Ts...>());
}

template<class T>
task<first_of<value_of<T>>> any_of(std::vector<member<T>> members)
{
    if (members.empty()) throw error(errc::invalid_argument, "waiting for any of no tasks");
    deciding_group g(co_await current_context(), deciding_group::decides::first_end);
    for (auto& m : members) {
        m.start_in(g);
    }
    co_await g.join();
    if (g.failure()) std::rethrow_exception(g.failure());
    std::size_t index = 0;
    while (&members[index] != g.decider()) {
        ++index;
    }
    first_of<value_of<T>> first(index, take_value(members[index]));
    co_return first;
}

} // namespace detail

/// Runs tasks side by side until one has ended, in any way: it decides. The rest are asked to stop, and joined, before
/// this gives the first one's value, as a variant whose index() is the task's place (std::monostate for void,
/// std::reference_wrapper for a reference), or throws what it threw.
///
/// What the others end with is dropped, a failure or a value that came too late too: a task that takes something (a
/// value of a channel, a permit) and must not lose it keeps it outside, or is awaited on its own. To know which task
/// failed, give tasks that end with a `result`.
template<detail::taskable... Ts>
    requires(sizeof...(Ts) > 0)
task<std::variant<detail::value_of<typename Ts::value_type>...>> when_any(Ts... tasks)
{
    return detail::any_of(task<typename Ts::value_type>(std::move(tasks))...);
}

/// The same for a range of tasks, which it takes. Throws `errc::invalid_argument` when there is none.
template<class R>
    requires detail::task_range<R>
task<first_of<detail::value_of<detail::range_value<R>>>> when_any(R&& tasks)
{
    return detail::any_of(detail::members_of(tasks));
}

} // namespace plait
