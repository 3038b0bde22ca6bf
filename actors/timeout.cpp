#include <plait/actors/timeout.hpp>

namespace plait::detail {

namespace {

/// Most timeouts never fire: an exception for each that is called off would cost more than all the rest.
class quiet_sleep : public clock::sleep_operation {
public:
    using sleep_operation::sleep_operation;
    bool await_resume() noexcept { return end(); }
};

/// A limit that means "never" must not overflow.
time_point later(time_point now, duration limit) noexcept
{
    bool endless = limit > duration::zero() && now > time_point::max() - limit;
    return endless ? time_point::max() : now + limit;
}

} // namespace

task<bool> sleep(clock& c, duration limit)
{
    co_return co_await quiet_sleep(c, later(c.now(), limit));
}

task<bool> sleep(clock& c, time_point due)
{
    co_return co_await quiet_sleep(c, due);
}

void check_deadline(bool timer_fired, std::exception_ptr const& failure, stop_token caller)
{
    if (timer_fired && !caller.stop_requested() && is_cancelled(failure)) {
        throw error(errc::deadline_exceeded, "waiting with a timeout");
    }
}

} // namespace plait::detail
