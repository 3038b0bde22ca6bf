#include <plait/actors/sync/latch.hpp>

namespace plait {

latch::latch(std::size_t count) noexcept
    : left_(count)
{
    if (count == 0) done_.set();
}

void latch::count_down(std::size_t n)
{
    if (n == 0) return;
    using outcome = detail::countdown<>::outcome;
    switch (left_.down(n)) {
    case outcome::counted:
        break;
    case outcome::zero:
        done_.set();
        break;
    case outcome::below_zero:
        throw error(errc::invalid_argument, "a latch was counted down below zero");
    }
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
