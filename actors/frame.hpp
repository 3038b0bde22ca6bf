#pragma once

#include <plait/actors/executor.hpp>
#include <plait/actors/frame_pool.hpp>
#include <plait/actors/fwd.hpp>
#include <plait/actors/site.hpp>
#include <plait/actors/stop.hpp>

#include <coroutine>
#include <type_traits>
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

namespace detail {

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
