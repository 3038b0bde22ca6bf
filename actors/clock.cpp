#include <plait/actors/clock.hpp>

#include <array>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <thread>

namespace plait {

namespace detail {

namespace {

bool before(timer const& a, timer const& b) noexcept
{
    return a.due != b.due ? a.due < b.due : a.number < b.number;
}

} // namespace

timer* timer_heap::meld(timer* a, timer* b) noexcept
{
    if (!a) return b;
    if (!b) return a;
    if (before(*b, *a)) std::swap(a, b);
    b->previous = a;
    b->sibling = a->child;
    if (a->child) a->child->previous = b;
    a->child = b;
    return a;
}

timer* timer_heap::merge_children(timer* first) noexcept
{
    // Pairs from left to right, kept in a stack through `sibling`; then one by one from right to left.
    timer* stack = nullptr;
    while (first) {
        auto* a = first;
        auto* b = a->sibling;
        first = b ? b->sibling : nullptr;
        a->sibling = a->previous = nullptr;
        if (b) b->sibling = b->previous = nullptr;
        auto* pair = meld(a, b);
        pair->sibling = stack;
        stack = pair;
    }
    timer* root = nullptr;
    while (stack) {
        auto* next = stack->sibling;
        stack->sibling = nullptr;
        root = meld(root, stack);
        stack = next;
    }
    return root;
}

void timer_heap::push(timer& t) noexcept
{
    t.child = t.sibling = t.previous = nullptr;
    root_ = meld(root_, &t);
}

void timer_heap::remove(timer& t) noexcept
{
    if (&t != root_) {
        (t.previous->child == &t ? t.previous->child : t.previous->sibling) = t.sibling;
        if (t.sibling) t.sibling->previous = t.previous;
    }
    auto* rest = merge_children(std::exchange(t.child, nullptr));
    root_ = &t == root_ ? rest : meld(root_, rest);
    if (root_) root_->previous = root_->sibling = nullptr;
}

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
    assert(!timers_.top() && "a clock must outlive its sleepers");
}

clock::sleep_operation clock::sleep_for(duration d) noexcept
{
    return {*this, detail::later(now(), d)};
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
        t.number = armed_++;
        t.armed = true;
        timers_.push(t);
        earliest = timers_.top() == &t;
    }
    if (earliest) earliest_changed();
}

void clock::cancel::operator()() const noexcept
{
    {
        std::lock_guard lock(owner->mutex_);
        if (!sleeper->armed) return;
        owner->timers_.remove(*sleeper);
        sleeper->armed = false;
        sleeper->cancelled = true;
    }
    sleeper->post();
}

std::optional<time_point> clock::next_due() const noexcept
{
    std::lock_guard lock(mutex_);
    if (auto* t = timers_.top()) return t->due;
    return std::nullopt;
}

void clock::fire(time_point t) noexcept
{
    detail::work_list due;
    {
        std::lock_guard lock(mutex_);
        while (auto* top = timers_.top()) {
            if (top->due > t) break;
            timers_.remove(*top);
            top->armed = false;
            due.push_back(*top);
        }
    }
    // Posted unlocked: the last sleeper may end the clock's life.
    while (auto* w = due.pop_front()) {
        static_cast<detail::timer*>(w)->post();
    }
}

wait_kind const clock::sleep_operation::asleep{"a time", [](resumption const& w, std::string& to) {
                                                   auto const due = static_cast<detail::timer const&>(w).due;
                                                   to += due == time_point::max()
                                                             ? " that never comes"
                                                             : ": " + detail::in_seconds(due.time_since_epoch());
                                               }};

void clock::sleep_operation::await_resume()
{
    if (!end()) throw error(errc::cancelled, "sleeping");
}

time_point manual_clock::now() const noexcept
{
    return time_point(duration(now_.load(std::memory_order_acquire)));
}

void manual_clock::advance(duration d) noexcept
{
    now_.fetch_add(d.count(), std::memory_order_acq_rel);
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
        fire(now());
        auto due = next_due();
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
