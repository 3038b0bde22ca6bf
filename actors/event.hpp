#pragma once

#include <plait/actors/waiter.hpp>

namespace plait {

/// A flag that coroutines of any executor wait for. Stays set until reset.
class event {
public:
    event() = default;
    ~event();

    bool is_set() const noexcept;
    /// Sets it and resumes all that wait; from any thread. A waiter may destroy the event when it resumes.
    void set() noexcept;
    void reset() noexcept;

    class wait_operation;
    /// `co_await e.wait()`: returns when it is set; throws `errc::cancelled` after a stop.
    [[nodiscard]] wait_operation wait() noexcept;

private:
    mutable std::mutex mutex_;
    bool set_ = false;
    detail::waiter_list waiting_;
};

class event::wait_operation {
public:
    explicit wait_operation(event& e) noexcept
        : event_(e)
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        cancelled_ = stop.stop_requested();
        if (cancelled_) return false;
        waiter_.bind(h);
        if (!begin()) return false;
        waiter_.watch(stop, event_.mutex_, event_.waiting_);
        return true;
    }

    void await_resume();

private:
    bool begin() noexcept;

    event& event_;
    detail::waiter waiter_;
    bool cancelled_ = false;
};

inline event::wait_operation event::wait() noexcept
{
    return wait_operation(*this);
}

} // namespace plait
