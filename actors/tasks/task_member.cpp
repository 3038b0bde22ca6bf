#include <plait/actors/tasks/task_member.hpp>

namespace plait::detail {

void deciding_group::ended(member_base const& m, std::exception_ptr const& failure) noexcept
{
    if (!decider_ && (failure || by_ == decides::first_end)) {
        decider_ = &m;
        failure_ = failure;
        request_stop();
    }
    task_group::ended();
}

} // namespace plait::detail
