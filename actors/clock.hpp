#pragma once

#include <plait/actors/task.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace plait {

/// All of plait's time is 64-bit nanoseconds, so that simulated time is exact.
using duration = std::chrono::duration<std::int64_t, std::nano>;
/// A point on a `clock`; its origin is the clock's own.
using time_point = std::chrono::time_point<clock, duration>;

namespace detail {

/// `d` after `from`; never past the end of time, which means never.
time_point later(time_point from, duration d) noexcept;

/// "1.250000 s".
std::string in_seconds(duration d);

/// What every monotonic_clock shows.
time_point machine_time() noexcept;

/// A sleeping coroutine: a node of the clock's heap, in the sleeper's frame.
struct timer : resumption {
    time_point due;
    std::uint64_t number = 0; ///< orders timers that are due together: first armed, first fired
    bool armed = false;
    bool cancelled = false;
    timer* child = nullptr;
    timer* sibling = nullptr;
    timer* previous = nullptr; ///< the elder sibling, or the parent of a first child
};

/// A pairing heap of timers: nothing is allocated, arming takes constant time.
class timer_heap {
public:
    timer* top() const noexcept { return root_; }
    void push(timer& t) noexcept;
    void remove(timer& t) noexcept;

private:
    static timer* meld(timer* a, timer* b) noexcept;
    static timer* merge_children(timer* first) noexcept;

    timer* root_ = nullptr;
};

} // namespace detail

/// A source of time that coroutines sleep on. Derive to give time another meaning: call `fire` when it has passed.
class clock {
public:
    clock() = default;
    clock(clock const&) = delete;
    clock& operator=(clock const&) = delete;
    virtual ~clock();

    virtual time_point now() const noexcept = 0;

    /// The date and time of day that a person sees now, as if their zone were UTC. It may jump; nothing is timed by it.
    /// Where time is made up, the day that `now` counts from is 1 January 1970.
    virtual std::chrono::sys_seconds date() const noexcept;

    class sleep_operation;
    /// `co_await c.sleep_until(t)`: returns at `t` or soon after, at once if it has passed. Throws `errc::cancelled`
    /// after a stop.
    [[nodiscard]] sleep_operation sleep_until(time_point t) noexcept;
    [[nodiscard]] sleep_operation sleep_for(duration d) noexcept;

    /// When the next sleeper is due, if there is one.
    std::optional<time_point> next_due() const noexcept;

protected:
    /// Called, unlocked, when a timer was armed that is due before all others.
    virtual void earliest_changed() noexcept = 0;

    /// Resumes every sleeper that is due at `t`, in order of time.
    void fire(time_point t) noexcept;

private:
    struct cancel {
        clock* owner;
        detail::timer* sleeper;
        void operator()() const noexcept;
    };

    void arm(detail::timer& t) noexcept;

    mutable std::mutex mutex_;
    detail::timer_heap timers_;
    std::uint64_t armed_ = 0;
};

class clock::sleep_operation {
public:
    sleep_operation(clock& c, time_point due) noexcept
        : clock_(c)
    {
        timer_.due = due;
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        timer_.cancelled = stop.stop_requested();
        if (timer_.cancelled || timer_.due <= clock_.now()) return false;
        timer_.bind(h, asleep);
        clock_.arm(timer_);
        if (stop.stop_possible()) on_stop_.emplace(stop, cancel{&clock_, &timer_});
        return true;
    }

    void await_resume();

protected:
    /// Ends the wait; false when a stop cut it short.
    bool end() noexcept
    {
        on_stop_.reset();
        return !timer_.cancelled;
    }

private:
    static wait_kind const asleep;

    clock& clock_;
    detail::timer timer_;
    std::optional<stop_callback<cancel>> on_stop_;
};

inline clock::sleep_operation clock::sleep_until(time_point t) noexcept
{
    return {*this, t};
}

/// A clock that stands still until told: for tests.
class manual_clock final : public clock {
public:
    explicit manual_clock(time_point start = {}) noexcept
        : now_(start.time_since_epoch().count())
    {
    }

    time_point now() const noexcept override;

    /// Moves time on and resumes the sleepers on the way, in order of time; each finds the clock at the end.
    void advance(duration d) noexcept;
    /// Moves to the next sleeper's time and resumes it. False if nobody sleeps.
    bool advance_to_next() noexcept;

private:
    void earliest_changed() noexcept override {}

    std::atomic<std::int64_t> now_;
};

/// The machine's monotonic time. Its thread starts with the first sleeper and waits without spinning.
class monotonic_clock final : public clock {
public:
    monotonic_clock();
    ~monotonic_clock() override;

    time_point now() const noexcept override;
    std::chrono::sys_seconds date() const noexcept override;

private:
    struct waker;
    void earliest_changed() noexcept override;
    void wait_and_fire() noexcept;

    std::unique_ptr<waker> waker_;
};

} // namespace plait
