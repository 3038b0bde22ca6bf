#include <plait/actors/sync/event.hpp>

#include <cassert>

namespace plait {

event::~event()
{
    assert(waiting_.empty() && "an event must outlive its waiters");
}

bool event::is_set() const noexcept
{
    std::lock_guard lock(mutex_);
    return set_;
}

void event::set() noexcept
{
    detail::waiter* chain = nullptr;
    {
        std::lock_guard lock(mutex_);
        set_ = true;
        chain = waiting_.pop_all();
    }
    detail::waiter_list::resume_chain(chain);
}

void event::reset() noexcept
{
    std::lock_guard lock(mutex_);
    set_ = false;
}

bool event::wait_operation::begin() noexcept
{
    std::lock_guard lock(event_.mutex_);
    if (event_.set_) return false;
    event_.waiting_.push_back(waiter_);
    return true;
}

result<void> event::wait_operation::await_result() noexcept
{
    waiter_.unwatch();
    result<void> outcome;
    if (cancelled_ || waiter_.cancelled()) {
        outcome.fail(detail::shared_failure(errc::cancelled, kind_->name, "waiting for "));
    } else {
        outcome.emplace();
    }
    return outcome;
}

task<> wait_for(event& e)
{
    co_await e.wait();
}

} // namespace plait
