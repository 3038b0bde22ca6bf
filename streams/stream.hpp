#pragma once

#include <cstdint>
#include <exception>
#include <type_traits>

#include <plait/streams/share.hpp>
#include <plait/streams/ticket.hpp>

namespace plait {

class trace_part;

/// An in-order queue of device work with a timeline: a 64-bit counter that only grows. Each operation put on the stream
/// takes the next value and returns it as a ticket; when the operation is done the timeline reaches that value.
/// Owned by a device; only the thread of its gpu touches it.
///
/// A stream may fail: then its timeline stays where it is, what is still queued never runs, and an operation put later
/// gets a ticket that has failed too. A device fails as a whole (device::abort), for its streams wait for each other.
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

    /// Makes later operations of this stream follow `t`, without the host waiting. A ticket of this stream, or one
    /// that is over, costs nothing.
    void wait(ticket t);

    /// Fails the stream: whoever waits for a ticket that has not passed resumes and throws `why`, and so does every
    /// later such wait. When it returns no operation of the stream runs any more. The first reason stays.
    void fail(std::exception_ptr why) noexcept;

    /// Why it failed, or null.
    std::exception_ptr const& failure() const noexcept { return failure_; }

    /// Its operations are recorded on a track of `where`; see device::record_in, which calls it.
    virtual void record_in(trace_part& where, std::uint32_t track);

protected:
    /// Reserves the next value for an operation.
    ticket issue() noexcept { return {*this, ++issued_}; }

    /// The timeline has reached `value`: resumes those who waited for it, in the order of their values.
    void advance(std::uint64_t value) noexcept;

    /// Puts a wait for another stream's ticket on the device's queue.
    virtual void put_wait(ticket t) = 0;

    /// The stream has failed: takes what is queued off the device, and returns when nothing of it runs.
    virtual void drop() noexcept = 0;

private:
    friend class ticket::awaiter;
    void add(ticket::awaiter& waiting) noexcept;

    std::uint64_t issued_ = 0;
    std::uint64_t completed_ = 0;
    std::exception_ptr failure_;
    ticket::awaiter* waiters_ = nullptr; // sorted by value; equal values in order of arrival
};

} // namespace plait
