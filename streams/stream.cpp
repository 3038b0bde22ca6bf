#include <cassert>

#include <plait/streams/stream.hpp>

namespace plait {

bool ticket::passed() const noexcept
{
    return where_ == nullptr || where_->completed() >= value_;
}

void ticket::awaiter::enqueue() noexcept
{
    on_.where()->add(*this);
}

stream::~stream()
{
    assert(waiters_ == nullptr && "a stream was destroyed under a coroutine that waits for it");
}

void stream::wait(ticket t)
{
    if (t.where() == this || t.passed()) return;
    put_wait(t);
}

void stream::add(ticket::awaiter& waiting) noexcept
{
    auto** place = &waiters_;
    while (*place != nullptr && (*place)->on_.value() <= waiting.on_.value())
        place = &(*place)->next_;
    waiting.next_ = *place;
    *place = &waiting;
}

void stream::advance(std::uint64_t value) noexcept
{
    completed_ = value;
    while (waiters_ != nullptr && waiters_->on_.value() <= value) {
        auto* ready = waiters_;
        waiters_ = ready->next_;
        ready->resumption_.post(); // the awaiter may be gone after this
    }
}

} // namespace plait
