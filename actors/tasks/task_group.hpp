#pragma once

#include <plait/actors/tasks/frame.hpp>

#include <cstddef>
#include <optional>

namespace plait::detail {

/// Work that runs side by side under a stop of its own, which the parent's stop reaches, and is joined before this
/// goes. What scopes, when_all, when_any and timeout are made of. Used on the executor of the task that opened it.
class task_group {
public:
    explicit task_group(task_context& parent);
    task_group(task_group const&) = delete;
    task_group& operator=(task_group const&) = delete;
    ~task_group();

    /// Posts what starts one of them; `ended` follows once for it.
    void start(work& starter) noexcept;
    /// The same inside the call, so that a tree of groups is walked depth first, with as many frames alive as it is
    /// deep; posts when that nests too deep for the stack.
    void start_now(work& starter) noexcept;
    /// One has ended, on the group's executor.
    void ended() noexcept;

    void request_stop() noexcept { source_.request_stop(); }
    stop_token stop() const noexcept { return source_.token(); }
    /// How many have not ended.
    std::size_t running() const noexcept { return running_; }
    /// What they run under.
    task_context& context() noexcept { return context_; }

    class join_operation;
    /// Waits until all have ended; neither throws nor stops.
    [[nodiscard]] join_operation join() noexcept;

private:
    struct pass_on {
        stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };

    stop_source source_;
    task_context context_;
    std::optional<stop_callback<pass_on>> parent_stop_; ///< goes before the source that it calls
    std::size_t running_ = 0;
    resumption* joining_ = nullptr;
};

class task_group::join_operation {
public:
    explicit join_operation(task_group& g) noexcept
        : group_(g)
    {
    }
    bool await_ready() const noexcept { return group_.running_ == 0; }
    template<class P>
    void await_suspend(std::coroutine_handle<P> h) noexcept
    {
        static constexpr wait_kind kind{"the tasks beside it"};
        resumption_.bind(h, kind);
        group_.joining_ = &resumption_;
    }
    void await_resume() const noexcept {}

private:
    task_group& group_;
    resumption resumption_;
};

inline task_group::join_operation task_group::join() noexcept
{
    return join_operation(*this);
}

} // namespace plait::detail
