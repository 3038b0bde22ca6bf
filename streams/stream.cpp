#include <cassert>
#include <string>
#include <utility>

#include <plait/streams/stream.hpp>

namespace plait {

bool ticket::passed() const noexcept
{
    return where_ == nullptr || where_->completed() >= value_;
}

bool ticket::over() const noexcept
{
    return passed() || where_->failure() != nullptr;
}

bool ticket::awaiter::await_ready() noexcept
{
    auto const& on = resumption_.on;
    if (on.passed()) return true;
    failure_ = on.where()->failure();
    return failure_ != nullptr;
}

wait_kind const ticket::awaiter::a_ticket{"a ticket", [](resumption const& w, std::string& to) {
                                              auto const& on = static_cast<waiting const&>(w).on;
                                              to += " of a stream: " + std::to_string(on.value()) + ", which is at " +
                                                    std::to_string(on.where()->completed());
                                          }};

void ticket::awaiter::enqueue() noexcept
{
    resumption_.on.where()->add(*this);
}

stream::~stream()
{
    assert(waiters_ == nullptr && "a stream was destroyed under a coroutine that waits for it");
}

void stream::record_in(trace_part& /*where*/, std::uint32_t /*track*/) {}

void stream::wait(ticket t)
{
    if (t.where() == this || t.over()) return;
    put_wait(t);
}

void stream::fail(std::exception_ptr why) noexcept
{
    if (failure_) return;
    failure_ = std::move(why);
    drop();
    while (waiters_ != nullptr) {
        auto* failed = waiters_;
        waiters_ = failed->next_;
        failed->failure_ = failure_;
        failed->resumption_.post(); // the awaiter may be gone after this
    }
}

void stream::add(ticket::awaiter& waiting) noexcept
{
    auto** place = &waiters_;
    while (*place != nullptr && (*place)->resumption_.on.value() <= waiting.resumption_.on.value())
        place = &(*place)->next_;
    waiting.next_ = *place;
    *place = &waiting;
}

void stream::advance(std::uint64_t value) noexcept
{
    completed_ = value;
    while (waiters_ != nullptr && waiters_->resumption_.on.value() <= value) {
        auto* ready = waiters_;
        waiters_ = ready->next_;
        ready->resumption_.post(); // the awaiter may be gone after this
    }
}

} // namespace plait
