#pragma once

#include <plait/actors/tasks/frame.hpp>
#include <plait/actors/tasks/result.hpp>

#include <concepts>
#include <functional>

namespace plait {

namespace detail {

template<class T>
class task_promise;

/// Whose context a task is awaited under.
struct context_of_awaiter {
    static task_context& in(frame& awaiter) noexcept { return awaiter.context(); }
};
struct another_context {
    task_context& in(frame&) const noexcept { return *context; }
    task_context* context;
};

/// Awaits a task. Owns its frame.
template<class T, bool AsResult, class Context = context_of_awaiter>
class task_awaiter;

struct task_access;

} // namespace detail

/// A lazy coroutine: starts when awaited, is owned by whoever awaits it, runs on the awaiter's executor under the
/// awaiter's stop token, and gives its value or its exception once.
///
/// Awaiting a task that ends without suspending costs no stack and no queue; a task that is awaited twice throws
/// `errc::invalid_argument`. Parameters of a coroutine are values or handles: a reference must outlive the task.
template<class T>
class [[nodiscard]] task {
public:
    using promise_type = detail::task_promise<T>;
    using value_type = T;
    using awaits_frame = void;

    task() noexcept = default;
    task(task&& other) noexcept
        : handle_(std::exchange(other.handle_, {}))
    {
    }
    task& operator=(task&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~task()
    {
        if (handle_) handle_.destroy();
    }

    /// Whether there is something to await.
    explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

    detail::task_awaiter<T, false> operator co_await() && noexcept;

private:
    friend promise_type;
    friend detail::task_access;
    explicit task(std::coroutine_handle<promise_type> h) noexcept
        : handle_(h)
    {
    }

    std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template<class T>
class task_promise_result : public frame {
public:
    template<class U>
        requires std::convertible_to<U&&, T>
    void return_value(U&& value)
    {
        result_.emplace(std::forward<U>(value));
    }
    result<T> result_;
};

template<>
class task_promise_result<void> : public frame {
public:
    void return_void() { result_.emplace(); }
    result<void> result_;
};

template<class T>
class task_promise final : public task_promise_result<T> {
public:
    task<T> get_return_object() noexcept { return task<T>{std::coroutine_handle<task_promise>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    frame::final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { this->result_.fail(std::current_exception()); }

private:
    friend frame::final_awaiter;
};

/// The door for scopes, actors and the runtime.
struct task_access {
    template<class T>
    static auto release(task<T>& t) noexcept
    {
        return std::exchange(t.handle_, {});
    }

    /// Starts `t` as a root, now, on the executor of `context`.
    template<class T>
    static void start(task<T>& t, task_context& context, void (*ended)(void*) noexcept, void* owner) noexcept
    {
        t.handle_.promise().start_root(t.handle_, context, ended, owner);
    }

    /// Its last await.
    template<class T>
    static site where(task<T> const& t) noexcept
    {
        return t.handle_.promise().where();
    }

    /// The outcome of a task that has ended.
    template<class T>
    static result<T> take(task<T>& t) noexcept
    {
        return std::move(t.handle_.promise().result_);
    }
};

template<class T, bool AsResult, class Context>
class task_awaiter {
    using handle = std::coroutine_handle<task_promise<T>>;

public:
    using awaits_frame = void;

    explicit task_awaiter(handle h, Context context = {}) noexcept
        : handle_(h)
        , context_(context)
    {
    }
    task_awaiter(task_awaiter&& other) noexcept
        : handle_(std::exchange(other.handle_, {}))
        , context_(other.context_)
    {
    }
    ~task_awaiter()
    {
        if (handle_) handle_.destroy();
    }

    bool await_ready() const noexcept { return !handle_; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        static_assert(std::derived_from<P, frame>,
                      "a plait task is awaited inside a plait task; elsewhere start it with async_start");
        frame& child = handle_.promise();
        frame& parent = h.promise();
        return child.start_child(handle_, parent, h, context_.in(parent));
    }

    std::conditional_t<AsResult, result<T>, T> await_resume()
    {
        if constexpr (AsResult) {
            if (!handle_) {
                result<T> none;
                none.fail(errc::invalid_argument, nothing);
                return none;
            }
            return std::move(handle_.promise().result_);
        } else {
            return value();
        }
    }

private:
    static constexpr auto nothing = "awaited a task that is empty or was awaited before";
    [[noreturn, gnu::cold, gnu::noinline]] static void throw_nothing() { throw error(errc::invalid_argument, nothing); }

    T value()
    {
        if (!handle_) throw_nothing();
        return std::move(handle_.promise().result_).value();
    }

    handle handle_;
    [[no_unique_address]] Context context_;
};

/// Awaits `t` under another context, which lives in the awaiting frame.
template<class T>
task_awaiter<T, false, another_context> with_context(task<T> t, task_context& context) noexcept
{
    return task_awaiter<T, false, another_context>(task_access::release(t), another_context{&context});
}

template<class T>
task_awaiter<T, true, another_context> result_with_context(task<T> t, task_context& context) noexcept
{
    return task_awaiter<T, true, another_context>(task_access::release(t), another_context{&context});
}
} // namespace detail

template<class T>
detail::task_awaiter<T, false> task<T>::operator co_await() && noexcept
{
    return detail::task_awaiter<T, false>(std::exchange(handle_, {}));
}

/// Awaits `t` and gives its outcome as a `result<T>`; never throws what the task threw.
template<class T>
detail::task_awaiter<T, true> as_result(task<T> t) noexcept
{
    return detail::task_awaiter<T, true>(detail::task_access::release(t));
}

namespace detail {

/// What co_await takes as it is: the operations of channels, events, clocks and the like.
template<class T>
concept operation = requires(std::remove_reference_t<T>& op) {
    op.await_ready();
    op.await_resume();
};

/// Awaits an operation and keeps what it throws.
template<class Operation>
class result_awaiter {
    using value_type = decltype(std::declval<Operation&>().await_resume());

public:
    explicit result_awaiter(Operation& op) noexcept
        : operation_(&op)
    {
    }

    bool await_ready() { return operation_->await_ready(); }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        try {
            if constexpr (std::is_void_v<decltype(operation_->await_suspend(h))>) {
                operation_->await_suspend(h);
                return true;
            } else {
                return operation_->await_suspend(h);
            }
        } catch (...) {
            failure_ = std::current_exception();
            return false;
        }
    }

    result<value_type> await_resume() noexcept
    {
        result<value_type> outcome;
        if (failure_) {
            outcome.fail(std::move(failure_));
            return outcome;
        }
        // What it can say without throwing costs a hundredth.
        if constexpr (requires { operation_->await_result(); }) return operation_->await_result();
        try {
            if constexpr (std::is_void_v<value_type>) {
                operation_->await_resume();
                outcome.emplace();
            } else {
                outcome.emplace(operation_->await_resume());
            }
        } catch (...) {
            outcome.fail(std::current_exception());
        }
        return outcome;
    }

private:
    Operation* operation_;
    std::exception_ptr failure_;
};

/// An operation whose outcome is wanted; awaited in the expression that makes it, since it refers to the operation.
template<class Operation>
class [[nodiscard]] result_request {
public:
    explicit result_request(Operation& op) noexcept
        : operation_(op)
    {
    }
    result_awaiter<Operation> operator co_await() && noexcept { return result_awaiter<Operation>(operation_); }

private:
    Operation& operation_;
};

} // namespace detail

/// The same for an operation: `co_await as_result(c.receive())`, in one expression.
template<detail::operation Operation>
    requires(!std::is_lvalue_reference_v<Operation>)
detail::result_request<Operation> as_result(Operation&& op) noexcept
{
    return detail::result_request<Operation>(op);
}

namespace detail {

/// A task, or what becomes one, like an ask.
template<class T>
concept taskable = requires { typename T::value_type; } && std::convertible_to<T, task<typename T::value_type>>;

template<class T>
task<T> without_stop(task<T> t)
{
    task_context context = co_await current_context();
    context.stop = {};
    co_return co_await with_context(std::move(t), context);
}

} // namespace detail

/// Runs `t` (a task, or what becomes one, like an ask) to its end whatever stop is requested of the caller, before or
/// meanwhile: for cleaning up. The caller waits for it as for any other.
template<detail::taskable T>
task<typename T::value_type> shield(T t)
{
    return detail::without_stop(task<typename T::value_type>(std::move(t)));
}

/// Calls the coroutine function `f` and keeps it alive until its task ends: a capturing lambda's captures live in the
/// lambda, not in the coroutine's frame.
template<class F, class... Args>
auto co_invoke(F f, Args... args) -> std::invoke_result_t<F&, Args...>
{
    co_return co_await std::invoke(f, std::move(args)...);
}
} // namespace plait
