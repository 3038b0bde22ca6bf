#include <plait/actors/runtime/runtime_watchdog.hpp>

#include <algorithm>
#include <utility>

namespace plait::detail {

namespace {

duration steady_now() noexcept
{
    return std::chrono::steady_clock::now().time_since_epoch();
}

} // namespace

constinit thread_local watched_thread* watched_thread::current = nullptr;

void watched_thread::turn::begin() noexcept
{
    outer_ = {thread_->name_.load(std::memory_order_relaxed), thread_->length_.load(std::memory_order_relaxed)};
    thread_->set(actor_);
}

void watched_thread::set(std::string_view actor) noexcept
{
    // A sequence lock with one writer: odd while the name changes.
    auto const turns = turns_.load(std::memory_order_relaxed);
    turns_.store(turns + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    name_.store(actor.data(), std::memory_order_relaxed); // NOLINT(bugprone-suspicious-stringview-data-usage)
    length_.store(actor.size(), std::memory_order_relaxed);
    turns_.store(turns + 2, std::memory_order_release);
}

watchdog::watchdog(duration longest_turn, std::function<void(blocked const&)> tell)
    : longest_turn_(longest_turn)
    , tell_(std::move(tell))
    , thread_([this] { watch(); })
{
}

watchdog::~watchdog()
{
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ending_changed_.notify_one();
    thread_.join();
}

watchdog::guard::guard(watchdog* by)
    : by_(by)
{
    if (!by_) return;
    watched_thread::current = &thread_;
    std::lock_guard lock(by_->mutex_);
    by_->threads_.push_back(&thread_);
}

watchdog::guard::~guard()
{
    if (!by_) return;
    watched_thread::current = nullptr;
    std::lock_guard lock(by_->mutex_);
    std::erase(by_->threads_, &thread_);
}

void watchdog::watch()
{
    std::unique_lock lock(mutex_);
    // Often enough to tell soon after the time has passed.
    while (!ending_changed_.wait_for(lock, longest_turn_ / 4, [this] { return ending_; })) {
        auto const now = steady_now();
        for (auto* t : threads_)
            look(*t, now);
    }
}

void watchdog::look(watched_thread& t, duration now)
{
    auto const turns = t.turns_.load(std::memory_order_acquire);
    if (turns != t.seen_) {
        t.seen_ = turns;
        t.since_ = now;
        t.told_ = false;
        return;
    }
    if (t.told_ || turns % 2 != 0 || now - t.since_ < longest_turn_) return;
    std::string_view const actor{t.name_.load(std::memory_order_relaxed), t.length_.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (t.turns_.load(std::memory_order_relaxed) != turns || actor.empty()) return;
    t.told_ = true;
    tell_(blocked{actor, now - t.since_});
}

} // namespace plait::detail
