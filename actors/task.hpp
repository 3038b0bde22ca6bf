#pragma once

#include <plait/actors/executor.hpp>
#include <plait/actors/frame_pool.hpp>
#include <plait/actors/fwd.hpp>
#include <plait/actors/result.hpp>
#include <plait/actors/site.hpp>
#include <plait/actors/stop.hpp>

#include <concepts>
#include <coroutine>
#include <functional>
#include <utility>

namespace plait {

/// Where and under what a task runs. A child uses its awaiter's; scopes, actors and the runtime make new ones. An
/// awaitable reaches it in `template<class P> … await_suspend(std::coroutine_handle<P> h)` as `h.promise().context()`.
struct task_context {
    executor* exec = nullptr;    ///< resumes the task
    stop_token stop;             ///< asks it to end early
    void const* owner = nullptr; ///< the actor's method that it is part of
};

namespace detail {

/// Awaits through a pointer. An await_transform that gave back the awaitable itself would need it to be copyable with
/// g++ 12, which moves what a reference refers to into the frame.
template<class Awaiter>
class awaiter_pointer {
public:
    explicit awaiter_pointer(Awaiter& awaiter) noexcept
        : awaiter_(&awaiter)
    {
    }
    bool await_ready() noexcept(noexcept(std::declval<Awaiter&>().await_ready())) { return awaiter_->await_ready(); }
    template<class P>
    decltype(auto) await_suspend(std::coroutine_handle<P> h)
    {
        return awaiter_->await_suspend(h);
    }
    decltype(auto) await_resume() { return awaiter_->await_resume(); }

private:
    Awaiter* awaiter_;
};

/// What every coroutine frame of plait begins with.
class frame {
public:
    task_context& context() const noexcept { return *context_; }

    /// Called by every co_await of the coroutine: notes its place, so that a suspended chain can be shown.
    template<class Awaitable>
    decltype(auto) await_transform(Awaitable&& awaitable, site where = here())
    {
        where_ = where;
        if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
            return std::forward<Awaitable>(awaitable).operator co_await();
        } else {
            return awaiter_pointer<std::remove_reference_t<Awaitable>>(awaitable);
        }
    }

    /// Where the coroutine awaits, and the frame that awaits it (null for a root).
    site where() const noexcept { return where_; }
    frame* awaiter() const noexcept { return awaiter_; }

    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* memory, std::size_t size) noexcept { free_frame(memory, size); }

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template<class P>
        void await_suspend(std::coroutine_handle<P> h) const noexcept
        {
            h.promise().ended();
        }
        void await_resume() const noexcept {}
    };

    /// Starts the coroutine `self`, whose frame this is, as a child of `parent`. True if it has suspended, false if it
    /// has ended: then the awaiter goes on at once.
    bool start_child(std::coroutine_handle<> self, frame& parent, std::coroutine_handle<> continuation,
                     task_context& context) noexcept;

    /// Starts it as a root: `ended(owner)` is called when it has ended, on its executor; it may destroy the frame.
    void start_root(std::coroutine_handle<> self, task_context& context, void (*ended)(void*) noexcept,
                    void* owner) noexcept;

protected:
    frame() = default;
    ~frame() = default;

    /// Gives control back to whoever awaits: used at the end, and by a generator at each yield.
    void ended() noexcept;

private:
    task_context* context_ = nullptr;
    frame* awaiter_ = nullptr;
    std::coroutine_handle<> continuation_;
    void (*root_ended_)(void*) noexcept = nullptr;
    void* root_owner_ = nullptr;
    site where_;
    unsigned depth_ = 0;
    /// `starting`: the awaiter is still inside await_suspend, with this frame above it on the stack.
    enum class state : unsigned char { suspended, starting, done } state_ = state::suspended;
};

/// Runs a coroutine, and then those that it makes ready by ending, until none is left. Keeps the stack flat however
/// long the chain, without relying on tail calls.
void resume(std::coroutine_handle<> h) noexcept;

template<class T>
class task_promise;

/// Awaits a task under `context` instead of the awaiter's, if given. Owns the frame.
template<class T, bool AsResult>
class task_awaiter;

struct task_access;

} // namespace detail

/// Resumes a coroutine through its executor. The part of an awaitable that outlives `await_suspend`.
class resumption : public work {
public:
    /// Remembers the coroutine and its executor. Call it in `await_suspend`, before the address of this is published.
    template<class P>
    void bind(std::coroutine_handle<P> h) noexcept
    {
        handle_ = h;
        exec_ = h.promise().context().exec;
        owner = h.promise().context().owner;
        run = [](work& self) noexcept { detail::resume(static_cast<resumption&>(self).handle_); };
    }

    /// Has the coroutine resumed, once for each suspension; from any thread. After it nothing of the awaiting frame
    /// may be touched from another executor.
    void post() noexcept { exec_->post(*this); }

private:
    std::coroutine_handle<> handle_;
    executor* exec_ = nullptr;
};

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

    /// The outcome of a task that has ended.
    template<class T>
    static result<T> take(task<T>& t) noexcept
    {
        return std::move(t.handle_.promise().result_);
    }
};

template<class T, bool AsResult>
class task_awaiter {
    using handle = std::coroutine_handle<task_promise<T>>;

public:
    explicit task_awaiter(handle h, task_context* context = nullptr) noexcept
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
        return child.start_child(handle_, parent, h, context_ ? *context_ : parent.context());
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

    T value()
    {
        if (!handle_) throw error(errc::invalid_argument, nothing);
        return std::move(handle_.promise().result_).value();
    }

    handle handle_;
    task_context* context_;
};

/// Awaits `t` under another context, which lives in the awaiting frame.
template<class T>
task_awaiter<T, false> with_context(task<T> t, task_context& context) noexcept
{
    return task_awaiter<T, false>(task_access::release(t), &context);
}

template<class T>
task_awaiter<T, true> result_with_context(task<T> t, task_context& context) noexcept
{
    return task_awaiter<T, true>(task_access::release(t), &context);
}

/// An awaitable that gives `Read(context)` at once.
template<class Read>
struct context_awaiter {
    explicit context_awaiter(Read read) noexcept
        : read_(read)
    {
    }

    bool await_ready() const noexcept { return false; }
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        context_ = &h.promise().context();
        return false;
    }
    decltype(auto) await_resume() const noexcept { return read_(*context_); }

    Read read_;
    task_context* context_ = nullptr;
};

/// The awaiting task's context.
inline auto current_context() noexcept
{
    return context_awaiter([](task_context& c) -> task_context& { return c; });
}

struct yield_awaiter {
    bool await_ready() const noexcept { return false; }
    template<class P>
    void await_suspend(std::coroutine_handle<P> h) noexcept
    {
        resumption_.bind(h);
        resumption_.post();
    }
    void await_resume() const noexcept {}

    resumption resumption_;
};

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

/// Runs `t` to its end whatever stop is requested of the caller: for cleaning up.
template<class T>
task<T> shield(task<T> t)
{
    task_context context = co_await detail::current_context();
    context.stop = {};
    co_return co_await detail::with_context(std::move(t), context);
}

/// Calls the coroutine function `f` and keeps it alive until its task ends: a capturing lambda's captures live in the
/// lambda, not in the coroutine's frame.
template<class F, class... Args>
auto co_invoke(F f, Args... args) -> std::invoke_result_t<F&, Args...>
{
    co_return co_await std::invoke(f, std::move(args)...);
}

namespace this_task {

/// `co_await this_task::stop()`: the task's stop token.
inline auto stop() noexcept
{
    return detail::context_awaiter([](task_context& c) { return c.stop; });
}

/// `co_await this_task::executor()`: what the task runs on; never null.
inline auto executor() noexcept
{
    return detail::context_awaiter([](task_context& c) { return c.exec; });
}

/// `co_await this_task::yield()`: lets the other works that are ready on the executor run first.
inline detail::yield_awaiter yield() noexcept
{
    return {};
}

} // namespace this_task

} // namespace plait
