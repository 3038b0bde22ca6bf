#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>

#include <plait/actors/runtime/executor.hpp>
#include <plait/actors/tasks/task.hpp>

namespace plait {

class stream;

/// A point on a stream's timeline: passed once the operation that returned it, and so every earlier one of that stream,
/// is done. A small value; valid as long as its stream. The default ticket has passed. Where the stream fails first, it
/// never passes.
///
/// `co_await t` suspends the host until the point has passed, or throws why the stream failed. Such a wait belongs on
/// the gpu that owns the stream. It can't be cancelled: stopping changes who waits for a result, never what the device
/// does, so a caller that loses interest stops waiting for the gpu, and the gpu still sees its operations end before it
/// reuses their memory.
class ticket {
public:
    ticket() = default;
    ticket(stream& where, std::uint64_t value) noexcept
        : where_(&where)
        , value_(value)
    {
    }

    stream* where() const noexcept { return where_; }
    std::uint64_t value() const noexcept { return value_; }
    bool passed() const noexcept;
    /// It has passed, or its stream has failed: either way nothing before it runs any more, and memory that it guards
    /// is free.
    bool over() const noexcept;

    class awaiter;
    awaiter operator co_await() const noexcept;

private:
    stream* where_ = nullptr;
    std::uint64_t value_ = 0;
};

/// A suspended coroutine in a stream's list of waiters.
class ticket::awaiter {
public:
    explicit awaiter(ticket on) noexcept { resumption_.on = on; }

    bool await_ready() noexcept;

    template<class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting)
    {
        resumption_.bind(waiting, a_ticket);
        enqueue();
        return true;
    }

    /// Throws why the stream failed.
    void await_resume() const
    {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    friend class stream;
    static wait_kind const a_ticket;
    void enqueue() noexcept;

    struct waiting : resumption {
        ticket on;
    } resumption_;
    awaiter* next_ = nullptr;
    std::exception_ptr failure_; ///< of the stream, before it came to the ticket
};

inline ticket::awaiter ticket::operator co_await() const noexcept
{
    return awaiter(*this);
}

} // namespace plait
