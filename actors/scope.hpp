#pragma once

#include <plait/actors/task.hpp>

#include <optional>
#include <tuple>
#include <variant>
#include <vector>

namespace plait {

/// Owns the tasks started in it. Made by `with_scope`, which joins them on every exit. When one fails, the rest and
/// the body are asked to stop, and with_scope throws that first failure.
///
/// All of it, `request_stop` included, is called on the executor of the task that opened it.
class scope {
public:
    explicit scope(task_context& parent);
    scope(scope const&) = delete;
    scope& operator=(scope const&) = delete;
    ~scope();

    /// Runs `t` beside the caller: it starts when the caller next waits. What it throws becomes the scope's failure.
    void start(task<> t);

    /// Calls `f` with copies of the arguments and keeps it alive until its task ends. For a lambda that captures: its
    /// captures live in it, and a local of the body is gone when the body has ended, before the tasks are joined.
    template<class F, class... Args>
        requires std::invocable<F&, Args...>
    void start(F f, Args... args)
    {
        start(co_invoke(std::move(f), std::move(args)...));
    }

    /// Asks everything in the scope to stop. What ends with `errc::cancelled` for it is not a failure.
    void request_stop() noexcept;

    stop_token stop() const noexcept { return source_.token(); }
    /// Tasks that have not ended.
    std::size_t running() const noexcept { return running_; }

    class join_operation;
    /// `co_await s.join()`: returns when every task has ended; neither throws nor stops.
    [[nodiscard]] join_operation join() noexcept;

    /// Notes a failure as if a task had thrown it.
    void fail(std::exception_ptr failure) noexcept;
    /// The first failure, or null.
    std::exception_ptr const& failure() const noexcept { return failure_; }
    /// What the tasks and the body run under.
    task_context& context() noexcept { return context_; }

private:
    struct child;
    struct pass_on {
        stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };

    void ended(child& c) noexcept;

    stop_source source_;
    task_context context_;
    std::optional<stop_callback<pass_on>> parent_stop_;
    std::size_t running_ = 0;
    std::exception_ptr failure_;
    bool asked_to_stop_ = false;
    resumption* joining_ = nullptr;
};

class scope::join_operation {
public:
    explicit join_operation(scope& s) noexcept
        : scope_(s)
    {
    }
    bool await_ready() const noexcept { return scope_.running_ == 0; }
    template<class P>
    void await_suspend(std::coroutine_handle<P> h) noexcept
    {
        resumption_.bind(h);
        scope_.joining_ = &resumption_;
    }
    void await_resume() const noexcept {}

private:
    scope& scope_;
    resumption resumption_;
};

inline scope::join_operation scope::join() noexcept
{
    return join_operation(*this);
}

/// Opens a scope, runs `body(scope&)`, a coroutine function that stays alive in this frame, and joins what it started
/// on every exit. Gives the body's value, or throws the first failure.
template<class Body>
auto with_scope(Body body) -> std::invoke_result_t<Body&, scope&>
{
    using value_type = typename std::invoke_result_t<Body&, scope&>::value_type;
    scope s(co_await detail::current_context());
    result<value_type> outcome;
    // A body need not be a coroutine: one that throws before it returns has perhaps started tasks.
    try {
        auto running = body(s);
        outcome = co_await detail::result_with_context(std::move(running), s.context());
    } catch (...) {
        outcome.fail(std::current_exception());
    }
    if (outcome.failure()) s.fail(outcome.failure());
    co_await s.join();
    if (s.failure()) std::rethrow_exception(s.failure());
    if constexpr (!std::is_void_v<value_type>) {
        co_return std::move(outcome).value();
    }
}

namespace detail {

template<class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template<class T>
task<> store(task<T> t, std::optional<value_of<T>>& value)
{
    if constexpr (std::is_void_v<T>) {
        co_await std::move(t);
        value.emplace();
    } else {
        value.emplace(co_await std::move(t));
    }
}

} // namespace detail

/// Runs tasks side by side and gives all their values (std::monostate for void). When one fails the rest are asked to
/// stop, and the first failure is thrown when all have ended.
template<class... Ts>
task<std::tuple<detail::value_of<Ts>...>> when_all(task<Ts>... tasks)
{
    scope s(co_await detail::current_context());
    std::tuple<std::optional<detail::value_of<Ts>>...> values;
    std::apply([&](auto&... value) { (s.start(detail::store(std::move(tasks), value)), ...); }, values);
    co_await s.join();
    if (s.failure()) std::rethrow_exception(s.failure());
    co_return std::apply([](auto&... value) { return std::tuple<detail::value_of<Ts>...>(std::move(*value)...); },
                         values);
}

/// The same for tasks of one type; the values are in the order of the tasks.
template<class T>
task<std::vector<detail::value_of<T>>> when_all(std::vector<task<T>> tasks)
{
    scope s(co_await detail::current_context());
    std::vector<std::optional<detail::value_of<T>>> values(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        s.start(detail::store(std::move(tasks[i]), values[i]));
    }
    co_await s.join();
    if (s.failure()) std::rethrow_exception(s.failure());
    std::vector<detail::value_of<T>> all;
    all.reserve(values.size());
    for (auto& value : values) {
        all.push_back(std::move(*value));
    }
    co_return all;
}

} // namespace plait
