#include <plait/actors/time/alarm.hpp>

namespace plait {

alarm::alarm(clock& c, executor& where, action ring) noexcept
    : clock_(c)
    , ring_(ring)
{
    bind(where, [](work& self) noexcept {
        auto& a = static_cast<alarm&>(static_cast<detail::timer&>(self));
        a.ring_(a);
    });
}

void alarm::set(time_point at) noexcept
{
    due = at;
    late = false;
    clock_.arm(*this);
}

bool alarm::cancel() noexcept
{
    return clock_.disarm(*this);
}

} // namespace plait
