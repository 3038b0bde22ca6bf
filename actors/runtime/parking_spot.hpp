#pragma once

#include <plait/actors/runtime/look_limit.hpp>
#include <plait/actors/runtime/machine_atomics.hpp>

namespace plait::detail {

/// Where the consumer of a mailbox sleeps. Whenever it goes idle it parks here once, and whoever finds it idle unparks
/// it once.
///
/// `state_`:
///   - `awake`   the consumer runs, or looks a few times more before it sleeps: a sender that comes at once needs no
///               system call, and neither does the consumer
///   - `asleep`  it sleeps, or is about to: whoever replaces this value wakes it
///   - `called`  it is to go on
/// The consumer goes on as soon as it is called, while the other thread may still wake it. So that thread is counted
/// from before until it has left, and the consumer waits for the count before it destroys this.
template<class Atomics = machine_atomics>
class parking_spot {
public:
    parking_spot() = default;
    parking_spot(parking_spot const&) = delete;
    parking_spot& operator=(parking_spot const&) = delete;
    /// On the consumer's thread, or after that has ended.
    ~parking_spot()
    {
        while (wakers_.load(std::memory_order_acquire) != 0) {
            Atomics::yield();
        }
    }

    /// The consumer has gone idle: sleeps until it is unparked.
    void park() noexcept
    {
        unsigned look = 0;
        for (; look < looks_.value() && state_.load(std::memory_order_relaxed) != called; ++look)
            Atomics::pause();
        looks_.learn(look < looks_.value());
        auto seen = awake;
        state_.compare_exchange_strong(seen, asleep, std::memory_order_relaxed, std::memory_order_relaxed);
        while (state_.load(std::memory_order_acquire) == asleep) {
            Atomics::sleep_at_once(state_, asleep);
        }
        state_.store(awake, std::memory_order_relaxed);
    }

    /// The caller has found the consumer idle.
    void unpark() noexcept
    {
        wakers_.fetch_add(1, std::memory_order_relaxed);
        if (state_.exchange(called, std::memory_order_release) == asleep) Atomics::wake_sleeper(state_);
        wakers_.fetch_sub(1, std::memory_order_release);
    }

private:
    static constexpr std::uint32_t awake = 0;
    static constexpr std::uint32_t asleep = 1;
    static constexpr std::uint32_t called = 2;

    look_limit<Atomics> looks_; ///< the consumer's
    typename Atomics::template atomic<std::uint32_t> state_{awake};
    typename Atomics::template atomic<std::uint32_t> wakers_{0};
};

} // namespace plait::detail
