#include <plait/actors/sync/semaphore.hpp>

#include <cassert>
#include <string>

namespace plait {

namespace {

/// After the mutex was released: a resumed coroutine may destroy the semaphore.
void resume(detail::work_list& granted) noexcept
{
    while (auto* w = granted.pop_front()) {
        static_cast<detail::waiter*>(w)->post();
    }
}

} // namespace

semaphore::semaphore(std::size_t units) noexcept
    : capacity_(units)
    , available_(units)
{
}

semaphore::~semaphore()
{
    assert(available_ == capacity_ && waiting_.empty() && "a semaphore must outlive its permits and waiters");
}

std::size_t semaphore::available() const noexcept
{
    std::lock_guard lock(mutex_);
    return available_;
}

void semaphore::check(std::size_t units) const
{
    if (units <= capacity_) return;
    throw error(errc::invalid_argument, "acquiring " + std::to_string(units) + " of the " + std::to_string(capacity_) +
                                            " units of a semaphore");
}

semaphore::permit semaphore::try_acquire(std::size_t units)
{
    check(units);
    std::lock_guard lock(mutex_);
    return take(units) ? permit(*this, units) : permit();
}

bool semaphore::take(std::size_t units) noexcept
{
    if (!waiting_.empty() || units > available_) return false;
    available_ -= units;
    return true;
}

void semaphore::give_back(std::size_t units) noexcept
{
    detail::work_list granted;
    {
        std::lock_guard lock(mutex_);
        available_ += units;
        grant(granted);
    }
    resume(granted);
}

void semaphore::withdraw(request& r) noexcept
{
    detail::work_list granted;
    {
        std::lock_guard lock(mutex_);
        if (!waiting_.cancel(r)) return;
        granted.push_back(r);
        grant(granted);
    }
    resume(granted);
}

void semaphore::grant(detail::work_list& granted) noexcept
{
    while (auto* oldest = static_cast<request*>(waiting_.front())) {
        if (oldest->units > available_) return;
        available_ -= oldest->units;
        waiting_.remove(*oldest);
        granted.push_back(*oldest);
    }
}

bool semaphore::acquire_operation::begin() noexcept
{
    std::lock_guard lock(semaphore_.mutex_);
    if (semaphore_.take(request_.units)) return false;
    semaphore_.waiting_.push_back(request_);
    return true;
}

semaphore::permit semaphore::acquire_operation::await_resume()
{
    return await_result().value();
}

result<semaphore::permit> semaphore::acquire_operation::await_result() noexcept
{
    on_stop_.reset();
    result<permit> outcome;
    if (cancelled_ || request_.cancelled()) {
        outcome.fail(errc::cancelled, "acquiring a semaphore");
    } else {
        outcome.emplace(permit(semaphore_, request_.units));
    }
    return outcome;
}

} // namespace plait
