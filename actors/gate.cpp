#include <plait/actors/gate.hpp>

#include <cassert>

namespace plait {

gate::~gate()
{
    assert(inside() == 0 && "a gate must outlive those inside");
}

bool gate::try_enter() noexcept
{
    auto state = state_.load(std::memory_order_relaxed);
    do {
        if (state & closed_bit) return false;
    } while (!state_.compare_exchange_weak(state, state + one_inside, std::memory_order_relaxed));
    return true;
}

void gate::enter()
{
    if (!try_enter()) throw error(errc::closed, "entering a gate");
}

void gate::leave() noexcept
{
    // Release, and acquire by the last one: whoever closes sees what all did inside.
    auto before = state_.fetch_sub(one_inside, std::memory_order_acq_rel);
    assert(before >= one_inside && "left a gate without having entered it");
    if (before == (closed_bit | one_inside)) empty_.set();
}

event::wait_operation gate::close() noexcept
{
    if (state_.fetch_or(closed_bit, std::memory_order_acq_rel) == 0) empty_.set();
    static constexpr wait_kind kind{"a gate to close"};
    return event::wait_operation(empty_, kind);
}

bool gate::closed() const noexcept
{
    return (state_.load(std::memory_order_acquire) & closed_bit) != 0;
}

std::size_t gate::inside() const noexcept
{
    return state_.load(std::memory_order_acquire) / one_inside;
}

} // namespace plait
