#pragma once

#include <plait/streams/stream.hpp>

namespace plait {

/// One coroutine's device work in program order: a small handle that remembers what its next operation must follow.
/// Moving a flow to another stream of the device makes that stream wait on the device; the host goes on.
/// Passed by value: a copy starts from the same point and then orders only its own operations.
class flow {
public:
    explicit flow(stream& where) noexcept
        : where_(&where)
        , last_(where.last())
    {
    }

    stream& where() const noexcept { return *where_; }

    /// The newest operation of this flow.
    ticket last() const noexcept { return last_; }

    /// The operation just put on where(); backends' operations call this.
    void issued(ticket t) noexcept { last_ = t; }

    /// Later operations of this flow follow `t` on the device.
    void follow(ticket t) { where_->wait(t); }

    /// Later operations go to `next`, after all that this flow has issued so far.
    void move_to(stream& next)
    {
        next.wait(last_);
        where_ = &next;
        last_ = next.last();
    }

    /// Suspends until every operation of this flow is done.
    ticket::awaiter operator co_await() const noexcept { return last_.operator co_await(); }

private:
    stream* where_;
    ticket last_;
};

} // namespace plait
