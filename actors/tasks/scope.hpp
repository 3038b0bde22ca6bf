#pragma once

#include <plait/actors/tasks/task.hpp>
#include <plait/actors/tasks/task_group.hpp>
#include <plait/actors/tasks/when_all.hpp>

namespace plait {

/// Owns the tasks started in it. Made by `with_scope`, which joins them on every exit. When one fails, the rest and
/// the body are asked to stop, and with_scope throws that first failure.
///
/// All of it, `request_stop` included, is called on the executor of the task that opened it.
class scope {
public:
    explicit scope(task_context& parent)
        : group_(parent)
    {
    }

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

    stop_token stop() const noexcept { return group_.stop(); }
    /// Tasks that have not ended.
    std::size_t running() const noexcept { return group_.running(); }

    /// `co_await s.join()`: returns when every task has ended; neither throws nor stops.
    [[nodiscard]] auto join() noexcept { return group_.join(); }

    /// Notes a failure as if a task had thrown it.
    void fail(std::exception_ptr failure) noexcept;
    /// The first failure, or null.
    std::exception_ptr const& failure() const noexcept { return failure_; }
    /// What the tasks and the body run under.
    task_context& context() noexcept { return group_.context(); }

private:
    struct child;
    void ended(child& c) noexcept;

    detail::task_group group_;
    std::exception_ptr failure_;
    bool asked_to_stop_ = false;
};

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

} // namespace plait
