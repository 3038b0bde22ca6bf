#pragma once

#include <plait/actors/sync/waiter.hpp>

namespace plait {

/// A flag that coroutines of any executor wait for. Stays set until reset. Outlives its waiters; the last of them to
/// be resumed by a set may destroy it.
class event {
public:
    event() = default;
    ~event();

    bool is_set() const noexcept;
    /// Sets it and resumes all that wait, in the order in which they came; from any thread.
    void set() noexcept;
    void reset() noexcept;

    class wait_operation;
    /// `co_await e.wait()`: returns when it is set; throws `errc::cancelled` after a stop. A reset does not take back
    /// what an earlier set has given to those who waited.
    [[nodiscard]] wait_operation wait() noexcept;

private:
    mutable std::mutex mutex_;
    bool set_ = false;
    detail::waiter_list waiting_;
};

class event::wait_operation {
public:
    /// `kind` says what is waited for, in errors too, where something is built on an event.
    explicit wait_operation(event& e, wait_kind const& kind = an_event) noexcept
        : event_(e)
        , kind_(&kind)
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        cancelled_ = stop.stop_requested();
        if (cancelled_) return false;
        waiter_.bind(h, *kind_);
        if (!begin()) return false;
        waiter_.watch(stop, event_.mutex_, event_.waiting_);
        return true;
    }

    void await_resume() { await_result().value(); }
    result<void> await_result() noexcept;

private:
    static constexpr wait_kind an_event{"an event"};
    bool begin() noexcept;

    event& event_;
    wait_kind const* kind_;
    detail::waiter waiter_;
    bool cancelled_ = false;
};

inline event::wait_operation event::wait() noexcept
{
    return wait_operation(*this);
}

/// The wait as a task, for what takes tasks, such as `timeout`. `e` outlives it.
task<> wait_for(event& e);

} // namespace plait
