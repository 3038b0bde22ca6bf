#pragma once

#include <plait/actors/time/timer_wheel.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace plait {

namespace detail {

/// `d` after `from`; never past the end of time, which means never.
time_point later(time_point from, duration d) noexcept;

/// "1.250000 s".
std::string in_seconds(duration d);

/// What every monotonic_clock shows.
time_point machine_time() noexcept;

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
    /// The same with a duration, from the await.
    [[nodiscard]] sleep_operation sleep_for(duration d) noexcept;

    /// Exactly when the next sleeper is due, if there is one.
    std::optional<time_point> next_due() noexcept;

protected:
    static constexpr auto all = static_cast<std::size_t>(-1);
    /// Sleepers that a clock with a thread fires at once: what they wait on stays in its processor's cache.
    static constexpr std::size_t some = 1024;

    /// Called, unlocked, when a timer was armed that is due before what `fire` or `next_due` gave last, or the first.
    virtual void earliest_changed() noexcept = 0;
    /// Called, unlocked, when the timer that was due before all others was cancelled.
    virtual void earliest_cancelled() noexcept {}

    /// Resumes every sleeper that is due at `t`: in order of time, and those that are due together in the order in
    /// which they lay down. Gives when to call it next, if anybody sleeps: nobody is due before that, though perhaps
    /// later, when whoever was due then has been cancelled.
    /// At most so many of a crowd, so that they go on while the others are looked for: then those are due at once.
    std::optional<time_point> fire(time_point t, std::size_t most = all) noexcept;

    /// The same in parts, for a clock that is not always right: takes out who is due, to be posted or put off.
    std::optional<time_point> take_due(time_point t, detail::work_list& due, std::size_t most = all) noexcept;
    void put_off(detail::timer& t, time_point due) noexcept;

private:
    friend class alarm;
    struct cancel {
        clock* owner;
        detail::timer* sleeper;
        void operator()() const noexcept;
    };

    void arm(detail::timer& t) noexcept;
    /// False when it is not armed, for it has never been, or it was taken out as due.
    bool disarm(detail::timer& t) noexcept;
    std::optional<time_point> look_next(std::optional<time_point> at) noexcept;

    std::mutex mutex_;
    detail::timer_wheel timers_;
    time_point alarm_ = time_point::max(); ///< when somebody looks next; who is due earlier makes himself heard
    bool watched_ = false;                 ///< somebody looks at all
};

class clock::sleep_operation {
public:
    sleep_operation(clock& c, time_point due) noexcept
        : clock_(c)
    {
        timer_.due = due;
    }
    sleep_operation(clock& c, duration d) noexcept
        : clock_(c)
        , after_(d)
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        timer_.cancelled = stop.stop_requested();
        if (timer_.cancelled) return false;
        auto const now = clock_.now();
        if (after_) timer_.due = detail::later(now, *after_);
        if (timer_.due <= now) return false;
        timer_.bind(h, asleep);
        timer_.run = detail::timer::go_on_and_prefetch;
        clock_.arm(timer_);
        if (stop.stop_possible()) on_stop_.emplace(stop, cancel{&clock_, &timer_});
        return true;
    }

    void await_resume();
    /// The same without throwing, for `as_result`.
    result<void> await_result() noexcept;

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
    std::optional<duration> after_;
    detail::timer timer_;
    std::optional<stop_callback<cancel>> on_stop_;
};

inline clock::sleep_operation clock::sleep_until(time_point t) noexcept
{
    return {*this, t};
}

inline clock::sleep_operation clock::sleep_for(duration d) noexcept
{
    return {*this, d};
}

/// A clock that stands still until told: for tests.
class manual_clock final : public clock {
public:
    explicit manual_clock(time_point start = {}) noexcept
        : now_(start.time_since_epoch().count())
    {
    }

    time_point now() const noexcept override;

    /// Moves time on, to the end of time at most, and resumes the sleepers on the way, in order of time; each finds the
    /// clock at the end. From one thread at a time.
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
