#include <plait/actors/sync/gate.hpp>

#include <cassert>

namespace plait {

gate::~gate()
{
    assert(inside() == 0 && "a gate must outlive those inside");
}

void gate::enter()
{
    if (!try_enter()) throw error(errc::closed, "entering a gate");
}

void gate::leave() noexcept
{
    assert(inside() > 0 && "left a gate without having entered it");
    if (count_.leave()) empty_.set();
}

event::wait_operation gate::close() noexcept
{
    if (count_.close()) empty_.set();
    static constexpr wait_kind kind{"a gate to close"};
    return event::wait_operation(empty_, kind);
}

} // namespace plait
