#include <plait/actors/tasks/timeout.hpp>

namespace plait::detail {

namespace {

/// Most timeouts never fire: an exception for each that is called off would cost more than all the rest.
class quiet_sleep : public clock::sleep_operation {
public:
    using sleep_operation::sleep_operation;
    bool await_resume() noexcept { return end(); }
};

} // namespace

task<bool> sleep(clock& c, duration limit)
{
    co_return co_await quiet_sleep(c, limit);
}

task<bool> sleep(clock& c, time_point due)
{
    co_return co_await quiet_sleep(c, due);
}

void check_deadline(bool timer_decided, std::exception_ptr const& failure, stop_token caller)
{
    if (timer_decided && !caller.stop_requested() && is_cancelled(failure)) {
        throw error(errc::deadline_exceeded, "waiting with a timeout");
    }
}

} // namespace plait::detail
