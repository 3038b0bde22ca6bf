#pragma once

#include <cstdint>
#include <type_traits>

#include <plait/streams/share.hpp>
#include <plait/streams/ticket.hpp>

namespace plait {

/// An in-order queue of device work with a timeline: a 64-bit counter that only grows. Each operation put on the stream
/// takes the next value and returns it as a ticket; when the operation is done the timeline reaches that value.
/// Owned by a device; only the thread of its gpu touches it.
class stream {
public:
    stream() = default;
    stream(stream const&) = delete;
    stream& operator=(stream const&) = delete;
    virtual ~stream();

    /// The timeline's value of the newest operation.
    std::uint64_t issued() const noexcept { return issued_; }

    /// How far the timeline has come.
    std::uint64_t completed() const noexcept { return completed_; }

    /// The newest operation's ticket.
    ticket last() noexcept { return {*this, issued_}; }

    /// Makes later operations of this stream follow `t`, without the host waiting. A ticket of this stream, or one that
    /// has passed, costs nothing.
    void wait(ticket t);

protected:
    /// Reserves the next value for an operation.
    ticket issue() noexcept { return {*this, ++issued_}; }

    /// The timeline has reached `value`: resumes those who waited for it, in the order of their values.
    void advance(std::uint64_t value) noexcept;

    /// Puts a wait for another stream's ticket on the device's queue.
    virtual void put_wait(ticket t) = 0;

private:
    friend class ticket::awaiter;
    void add(ticket::awaiter& waiting) noexcept;

    std::uint64_t issued_ = 0;
    std::uint64_t completed_ = 0;
    ticket::awaiter* waiters_ = nullptr; // sorted by value; equal values in order of arrival
};

} // namespace plait
