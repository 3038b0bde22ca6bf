#pragma once

#include <plait/actors/fwd.hpp>
#include <plait/actors/runtime/executor.hpp>
#include <plait/actors/tasks/frame_pool.hpp>
#include <plait/actors/tasks/site.hpp>
#include <plait/actors/tasks/stop.hpp>

#include <coroutine>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace plait {

namespace detail {
class chain_list;
class frame;
} // namespace detail

/// Where and under what a task runs. A child uses its awaiter's; scopes, actors and the runtime make new ones. An
/// awaitable reaches it in `template<class P> … await_suspend(std::coroutine_handle<P> h)` as `h.promise().context()`.
struct task_context {
    executor* exec = nullptr;    ///< resumes the task
    stop_token stop;             ///< asks it to end early
    void const* owner = nullptr; ///< the actor's method that it is part of
    /// Where the chains of awaits under it are kept for `dump`; null for what nobody looks at.
    detail::chain_list* chains = nullptr;
};

/// What a suspended coroutine waits for, as `dump` tells it.
struct wait_kind {
    char const* name;
    /// Adds what this very wait is for: a method, a time. On the coroutine's executor.
    void (*describe)(resumption const&, std::string& to) = nullptr;
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
        file_ = where.file;
        line_ = where.line;
        // A frame that is awaited notes itself.
        if constexpr (!requires { typename std::remove_cvref_t<Awaitable>::awaits_frame; }) beneath_ = nullptr;
        if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
            return std::forward<Awaitable>(awaitable).operator co_await();
        } else {
            return awaiter_pointer<std::remove_reference_t<Awaitable>>(awaitable);
        }
    }

    /// Where the coroutine awaits, and the frame that awaits it (null for a root).
    site where() const noexcept { return line_ != 0 ? site{file_, line_} : site{}; }
    frame* awaiter() const noexcept { return root_ ? nullptr : above_.awaiter; }

    /// While it is suspended: the frame that it awaits, or the operation, or neither, when what it awaits is not
    /// plait's.
    frame* awaited() const noexcept
    {
        return line_ == 0 || is_operation(beneath_) ? nullptr : reinterpret_cast<frame*>(beneath_);
    }
    resumption* awaited_operation() const noexcept;
    /// Noted by an operation when the coroutine suspends in it.
    void waits_for(resumption& operation) noexcept;

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
                     task_context& context) noexcept
    {
        context_ = &context;
        above_ = {&parent, continuation};
        parent.beneath_ = reinterpret_cast<char*>(this);
        depth_ = static_cast<std::uint16_t>(parent.depth_ + 1);
        if (depth_ % stack_depth == 0 && start_later(self)) {
            state_ = state::suspended;
            return true;
        }
        state_ = state::starting;
        self.resume();
        if (state_ != state::done) {
            state_ = state::suspended;
            return true;
        }
        parent.beneath_ = nullptr;
        return false;
    }

    /// Starts it as a root: `ended(owner)` is called when it has ended, on its executor; it may destroy the frame.
    void start_root(std::coroutine_handle<> self, task_context& context, void (*ended)(void*) noexcept,
                    void* owner) noexcept;

protected:
    frame() noexcept {} // NOLINT(modernize-use-equals-default): a default one would have to set the union
    ~frame() = default;

    /// Gives control back to whoever awaits: used at the end, and by a generator at each yield.
    void ended() noexcept
    {
        if (state_ == state::starting) {
            state_ = state::done;
        } else {
            give_back();
        }
    }

private:
    friend chain_list;

    /// How many awaits may nest on the stack before the next child starts from the trampoline, with an empty stack.
    static constexpr unsigned stack_depth = 128;
    static bool is_operation(char const* beneath) noexcept
    {
        return reinterpret_cast<std::uintptr_t>(beneath) % 2 != 0;
    }
    /// False where there is no trampoline.
    static bool start_later(std::coroutine_handle<> self) noexcept;
    void give_back() noexcept;

    // What has no initial value here is set by the start or by the first await: a frame is made more often than all
    // else.
    task_context* context_;
    struct way_back {
        frame* awaiter;
        std::coroutine_handle<> continuation;
    };
    struct listed {
        frame* next;
        frame* previous;
    };
    union {
        way_back above_; ///< of a child
        listed listed_;  ///< of a root: its place in a chain_list
    };
    void (*root_ended_)(void*) noexcept;
    void* root_owner_;
    /// The frame or the operation that it awaits; an operation is marked by bit 0. Set by whoever suspends it, cleared
    /// by its next await.
    char* beneath_;
    char const* file_;
    unsigned line_ = 0;       ///< 0 before the first await: then the two above have no value
    std::uint16_t depth_ = 0; ///< of awaits, modulo its range
    /// `starting`: the awaiter is still inside await_suspend, with this frame above it on the stack.
    enum class state : unsigned char { suspended, starting, done } state_ = state::suspended;
    bool root_ = false;
};

/// The chains of awaits that are parts of one thing (an actor's method, a task that was run): the method's own, and
/// those of the scopes inside it. Used on their executor.
class chain_list {
public:
    /// The oldest.
    frame* first() const noexcept { return first_; }
    static frame* next(frame const& root) noexcept { return root.listed_.next; }
    void add(frame& root) noexcept;
    void remove(frame& root) noexcept;

private:
    frame* first_ = nullptr;
    frame* last_ = nullptr;
};

/// Runs a coroutine, and then those that it makes ready by ending, until none is left. Keeps the stack flat however
/// long the chain, without relying on tail calls.
void resume(std::coroutine_handle<> h) noexcept;
} // namespace detail

/// Resumes a coroutine through its executor. The part of an awaitable that outlives `await_suspend`.
class resumption : public work {
public:
    /// Remembers the coroutine and its executor, and what it waits for, which lives as long as the program. Call it in
    /// `await_suspend`, before the address of this is published.
    template<class P>
    void bind(std::coroutine_handle<P> h, wait_kind const& kind) noexcept
    {
        kind_ = &kind;
        h.promise().waits_for(*this);
        handle_ = h;
        exec_ = h.promise().context().exec;
        owner = h.promise().context().owner;
        run = go_on;
    }

    /// The same for what waits like a coroutine and is none: `then` runs on `where`.
    void bind(executor& where, void (*then)(work&) noexcept) noexcept
    {
        exec_ = &where;
        run = then;
    }

    /// Has the coroutine resumed, once for each suspension; from any thread. After it nothing of the awaiting frame
    /// may be touched from another executor.
    void post() noexcept { exec_->post(*this); }
    /// The same for a list of resumptions, in their order, with one wake for neighbours of one executor.
    static void post_all(detail::work_list& all) noexcept;

    /// It was bound, and then there was nothing to wait for.
    void waits_no_more() noexcept { kind_ = nullptr; }
    /// While it waits.
    wait_kind const& kind() const noexcept { return *kind_; }

protected:
    static void go_on(work& self) noexcept
    {
        auto& r = static_cast<resumption&>(self);
        r.kind_ = nullptr; // a debugger sees that it waits no more
        detail::resume(r.handle_);
    }
    /// Where the coroutine's frame begins.
    void const* frame_begin() const noexcept { return handle_.address(); }

private:
    std::coroutine_handle<> handle_;
    executor* exec_ = nullptr;
    wait_kind const* kind_ = nullptr;
};

namespace detail {

inline resumption* frame::awaited_operation() const noexcept
{
    return line_ != 0 && is_operation(beneath_) ? reinterpret_cast<resumption*>(beneath_ - 1) : nullptr;
}

inline void frame::waits_for(resumption& operation) noexcept
{
    beneath_ = reinterpret_cast<char*>(&operation) + 1;
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
        static constexpr wait_kind kind{"its turn"};
        resumption_.bind(h, kind);
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
