#include <plait/actors/gate.hpp>

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
    return event::wait_operation(empty_, "waiting for a gate to close");
}

} // namespace plait
