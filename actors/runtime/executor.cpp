#include <plait/actors/runtime/executor.hpp>

namespace plait {

executor::~executor() = default;

void executor::post_all(detail::work_list& works) noexcept
{
    while (auto* w = works.pop_front()) {
        post(*w);
    }
}

unsigned executor::patience() const noexcept
{
    return 128;
}

bool executor::look_after(work& /*w*/, detail::mailbox& /*queue*/) noexcept
{
    return false;
}

bool executor::serial() const noexcept
{
    return true;
}

} // namespace plait
