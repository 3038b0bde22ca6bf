#include <plait/actors/latch.hpp>

namespace plait {

latch::latch(std::size_t count) noexcept
    : left_(count)
{
    if (count == 0) done_.set();
}

void latch::count_down(std::size_t n)
{
    if (n == 0) return;
    // Release, and acquire by the last one: what any of them did before is seen by whoever waits.
    auto left = left_.load(std::memory_order_relaxed);
    do {
        if (n > left) throw error(errc::invalid_argument, "a latch was counted down below zero");
    } while (!left_.compare_exchange_weak(left, left - n, std::memory_order_acq_rel, std::memory_order_relaxed));
    if (left == n) done_.set();
}

event::wait_operation latch::wait() noexcept
{
    static constexpr wait_kind kind{"a latch"};
    return event::wait_operation(done_, kind);
}

event::wait_operation latch::arrive_and_wait()
{
    count_down();
    return wait();
}

} // namespace plait
