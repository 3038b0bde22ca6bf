#pragma once

#include <plait/actors/runtime/counters.hpp>
#include <plait/actors/sync/event.hpp>

#include <cstddef>

namespace plait {

/// A count that goes down to zero once; coroutines of any executor wait for that. Outlives its waiters; the last of
/// them to be resumed by it may destroy it. Waiting allocates nothing; waiters resume in the order in which they came.
class latch {
public:
    explicit latch(std::size_t count) noexcept;

    /// From any thread. Throws `errc::invalid_argument`, and changes nothing, below zero.
    void count_down(std::size_t n = 1);

    /// Whether the count is zero.
    bool try_wait() const noexcept { return done_.is_set(); }

    /// `co_await l.wait()`: returns when the count is zero; throws `errc::cancelled` after a stop.
    [[nodiscard]] event::wait_operation wait() noexcept;

    /// Counts down now, whatever stop was requested, so that nobody waits for a cancelled participant; awaiting what
    /// it gives is `wait()`.
    [[nodiscard]] event::wait_operation arrive_and_wait();

private:
    detail::countdown<> left_;
    event done_;
};

} // namespace plait
