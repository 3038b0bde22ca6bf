#include <plait/actors/time/clock.hpp>

#include <array>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <thread>

namespace plait {

namespace detail {

std::string in_seconds(duration d)
{
    std::array<char, 32> text{};
    auto const length = std::snprintf(text.data(), text.size(), "%.6f s", std::chrono::duration<double>(d).count());
    return {text.data(), static_cast<std::size_t>(length)};
}

time_point later(time_point from, duration d) noexcept
{
    bool const endless = d > duration::zero() && from > time_point::max() - d;
    return endless ? time_point::max() : from + d;
}

time_point machine_time() noexcept
{
    return time_point(std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

} // namespace detail

clock::~clock()
{
    assert(timers_.empty() && "a clock must outlive its sleepers");
}

std::chrono::sys_seconds clock::date() const noexcept
{
    return std::chrono::sys_seconds(std::chrono::floor<std::chrono::seconds>(now().time_since_epoch()));
}

void clock::arm(detail::timer& t) noexcept
{
    bool earliest = false;
    {
        std::lock_guard lock(mutex_);
        t.armed = true;
        timers_.arm(t);
        earliest = !watched_ || t.due < alarm_;
        if (earliest) {
            watched_ = true;
            alarm_ = t.due;
        }
    }
    if (earliest) earliest_changed();
}

bool clock::disarm(detail::timer& t) noexcept
{
    bool earliest = false;
    {
        std::lock_guard lock(mutex_);
        if (!t.armed) return false;
        earliest = t.due <= alarm_;
        timers_.cancel(t);
        t.armed = false;
    }
    if (earliest) earliest_cancelled();
    return true;
}

void clock::cancel::operator()() const noexcept
{
    if (!owner->disarm(*sleeper)) return;
    sleeper->cancelled = true;
    sleeper->post(); // last: the clock may go after it
}

std::optional<time_point> clock::look_next(std::optional<time_point> at) noexcept
{
    watched_ = at.has_value();
    alarm_ = at.value_or(time_point::max());
    return at;
}

std::optional<time_point> clock::next_due() noexcept
{
    std::lock_guard lock(mutex_);
    return look_next(timers_.next());
}

std::optional<time_point> clock::take_due(time_point t, detail::work_list& due, std::size_t most) noexcept
{
    std::lock_guard lock(mutex_);
    timers_.advance(t, due, most);
    return look_next(timers_.no_earlier_than());
}

std::optional<time_point> clock::fire(time_point t, std::size_t most) noexcept
{
    detail::work_list due;
    auto const next = take_due(t, due, most);
    // Posted unlocked: the last sleeper may end the clock's life.
    resumption::post_all(due);
    return next;
}

void clock::put_off(detail::timer& t, time_point due) noexcept
{
    t.due = due;
    t.late = true;
    arm(t);
}

wait_kind const clock::sleep_operation::asleep{"a time", [](resumption const& w, std::string& to) {
                                                   auto const due = static_cast<detail::timer const&>(w).due;
                                                   to += due == time_point::max()
                                                             ? " that never comes"
                                                             : ": " + detail::in_seconds(due.time_since_epoch());
                                               }};

void clock::sleep_operation::await_resume()
{
    await_result().value();
}

result<void> clock::sleep_operation::await_result() noexcept
{
    result<void> outcome;
    if (end()) {
        outcome.emplace();
    } else {
        outcome.fail(errc::cancelled, "sleeping");
    }
    return outcome;
}

time_point manual_clock::now() const noexcept
{
    return time_point(duration(now_.load(std::memory_order_acquire)));
}

void manual_clock::advance(duration d) noexcept
{
    now_.store(detail::later(now(), d).time_since_epoch().count(), std::memory_order_release);
    fire(now());
}

bool manual_clock::advance_to_next() noexcept
{
    auto due = next_due();
    if (!due) return false;
    if (*due > now()) now_.store(due->time_since_epoch().count(), std::memory_order_release);
    fire(*due);
    return true;
}

struct monotonic_clock::waker {
    std::mutex mutex;
    std::condition_variable changed;
    bool look_again = false;
    bool ending = false;
    std::thread thread;
};

monotonic_clock::monotonic_clock()
    : waker_(std::make_unique<waker>())
{
}

monotonic_clock::~monotonic_clock()
{
    {
        std::lock_guard lock(waker_->mutex);
        waker_->ending = true;
    }
    waker_->changed.notify_one();
    if (waker_->thread.joinable()) waker_->thread.join();
}

std::chrono::sys_seconds monotonic_clock::date() const noexcept
{
    auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    auto const seconds = static_cast<std::time_t>(now.time_since_epoch().count());
    std::tm local{};
    if (!::localtime_r(&seconds, &local)) return now;
    return now + std::chrono::seconds(local.tm_gmtoff);
}

time_point monotonic_clock::now() const noexcept
{
    return detail::machine_time();
}

void monotonic_clock::earliest_changed() noexcept
{
    std::lock_guard lock(waker_->mutex);
    waker_->look_again = true;
    if (!waker_->thread.joinable()) waker_->thread = std::thread([this] { wait_and_fire(); });
    waker_->changed.notify_one();
}

void monotonic_clock::wait_and_fire() noexcept
{
    auto changed = [this] { return waker_->look_again || waker_->ending; };
    for (;;) {
        auto const due = fire(now(), some);
        std::unique_lock lock(waker_->mutex);
        if (due) {
            auto at = std::chrono::steady_clock::time_point(due->time_since_epoch());
            waker_->changed.wait_until(lock, at, changed);
        } else {
            waker_->changed.wait(lock, changed);
        }
        waker_->look_again = false;
        if (waker_->ending) return;
    }
}

} // namespace plait
