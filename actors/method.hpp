#pragma once

#include <plait/actors/tasks/task.hpp>

#include <string_view>
#include <tuple>
#include <type_traits>

namespace plait::detail {

template<class T>
struct unwrap_task {
    using type = T;
    static constexpr bool is_task = false;
};
template<class T>
struct unwrap_task<task<T>> {
    using type = T;
    static constexpr bool is_task = true;
};

template<class R, class C, class... Ps>
struct method_shape {
    using class_type = C;
    using returned = R;
    /// What an ask gives: of a coroutine, what it returns in the end.
    using value_type = typename unwrap_task<R>::type;
    static constexpr bool is_coroutine = unwrap_task<R>::is_task;
    /// A message holds the arguments as values until the method has ended.
    using arguments = std::tuple<std::remove_cvref_t<Ps>...>;
    static constexpr bool takes_values =
        ((!std::is_lvalue_reference_v<Ps> || std::is_const_v<std::remove_reference_t<Ps>>) && ...);
    static constexpr std::size_t arity = sizeof...(Ps);

    template<class M>
    static decltype(auto) call(M method, C& object, arguments& values)
    {
        return std::apply(
            [&](auto&... value) -> decltype(auto) { return (object.*method)(static_cast<Ps&&>(value)...); }, values);
    }
};

template<class M>
struct method_traits;
template<class R, class C, class... Ps>
struct method_traits<R (C::*)(Ps...)> : method_shape<R, C, Ps...> {};
template<class R, class C, class... Ps>
struct method_traits<R (C::*)(Ps...) const> : method_shape<R, C, Ps...> {};
template<class R, class C, class... Ps>
struct method_traits<R (C::*)(Ps...) noexcept> : method_shape<R, C, Ps...> {};
template<class R, class C, class... Ps>
struct method_traits<R (C::*)(Ps...) const noexcept> : method_shape<R, C, Ps...> {};

/// `&ns::type::method` as written by the compiler, without the ampersand.
template<auto Method>
consteval std::string_view method_name() noexcept
{
    std::string_view text = __PRETTY_FUNCTION__;
    auto first = text.find("Method = ");
    if (first == text.npos) return text;
    text.remove_prefix(first + 9);
    text = text.substr(0, text.find_first_of("];"));
    if (!text.empty() && text.front() == '&') text.remove_prefix(1);
    return text;
}

template<class A>
consteval std::string_view type_name() noexcept
{
    std::string_view text = __PRETTY_FUNCTION__;
    auto first = text.find("A = ");
    if (first == text.npos) return text;
    text.remove_prefix(first + 4);
    return text.substr(0, text.find_first_of("];"));
}

} // namespace plait::detail
