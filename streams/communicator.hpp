#pragma once

#include <plait/actors/tasks/site.hpp>
#include <plait/streams/operation_info.hpp>
#include <plait/streams/ticket.hpp>

#include <cstdint>
#include <exception>
#include <string_view>

namespace plait {

enum class collective_kind : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    broadcast,
    send,
    receive,
};
std::string_view name(collective_kind kind) noexcept;

enum class element_kind : std::uint8_t { f32, i32, u8 };
std::string_view name(element_kind kind) noexcept;
std::int64_t bytes_of(element_kind kind) noexcept;

/// One rank's side of a collective, as data. The memory is the device's; it belongs to the collective until its ticket
/// has passed. All ranks of a collective agree on everything but `in`, `out` and `where`; a send and its receive agree
/// on `element` and `count` and name each other as `peer`.
struct collective_call {
    collective_kind kind = collective_kind::all_reduce;
    element_kind element = element_kind::f32; ///< f32 where something is summed
    void const* in = nullptr; ///< null for a receive, and for a broadcast that this rank is not the root of
    void* out = nullptr;      ///< null for a send; may be `in`, but not of all_gather, reduce_scatter, all_to_all
    /// Elements: of `out`, but for all_gather of `in` (its `out` holds size() × count, in rank order) and for send of
    /// `in`. reduce_scatter: rank r gets elements r × count …; a summand has size() × count. all_to_all: `in` holds
    /// `count` for each rank, in rank order, and `out` `count` from each.
    std::int64_t count = 0;
    /// all_reduce, reduce_scatter: summands of this rank, which lie one after the other in `in`. The sum adds the first
    /// rank's first, its second, …, then the second rank's: ((a0 + a1) + b0) + b1 in F32, element by element, whatever
    /// the size. So `parts` summands on each of n ranks give the bits of one rank that has all of them.
    std::int32_t parts = 1;
    std::int32_t peer = 0; ///< broadcast: the root; send, receive: the other rank
    site where;            ///< of the call, for messages
};

/// Its bytes are those of the larger of a rank's `in`, one part of it, and `out`, in a group of `ranks`.
operation_info info_of(collective_call const& call, int ranks) noexcept;

/// Collectives among the ranks of a group, one object a rank. All ranks put the same collectives in the same order; a
/// group that is made to check (streams/host/host_group.hpp) names the two places that disagree. Used by the gpu that
/// owns the stream; abort() and failure() from any thread.
class communicator {
public:
    communicator() = default;
    communicator(communicator const&) = delete;
    communicator& operator=(communicator const&) = delete;
    virtual ~communicator();

    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;

    /// Puts this rank's side on a stream of its device. Returns at once; the ticket passes when this rank's `out` is
    /// there and its `in` is no longer needed. Throws error(errc::invalid_argument) for a call that makes no sense, and
    /// the group's failure once it has one.
    virtual ticket put(stream& on, collective_call const& call) = 0;

    /// Ends the group: every collective of every rank that is not done, and every later one, fails with `why`. The
    /// first reason stays.
    virtual void abort(std::exception_ptr why) noexcept = 0;

    /// Why the group ended, or null.
    virtual std::exception_ptr failure() const noexcept = 0;
};

} // namespace plait
