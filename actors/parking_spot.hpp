#pragma once

#include <plait/actors/machine_atomics.hpp>

namespace plait::detail {

/// Where the consumer of a mailbox sleeps. Whenever it goes idle it parks here once, and whoever finds it idle unparks
/// it once.
///
/// The consumer goes on as soon as `woken_` is 1, while the other thread may still notify it. So that thread is counted
/// from before the 1 until it has left, and the consumer waits for the count before it destroys this.
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
        while (woken_.load(std::memory_order_acquire) == 0) {
            Atomics::sleep_at_once(woken_, 0);
        }
        woken_.store(0, std::memory_order_relaxed);
    }

    /// The caller has found the consumer idle.
    void unpark() noexcept
    {
        wakers_.fetch_add(1, std::memory_order_relaxed);
        woken_.store(1, std::memory_order_release);
        Atomics::wake_sleeper(woken_);
        wakers_.fetch_sub(1, std::memory_order_release);
    }

private:
    typename Atomics::template atomic<std::uint32_t> woken_{0};
    typename Atomics::template atomic<std::uint32_t> wakers_{0};
};

} // namespace plait::detail
