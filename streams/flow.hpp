#pragma once

#include <plait/streams/communicator.hpp>
#include <plait/streams/stream.hpp>
#include <plait/streams/ticket_set.hpp>

namespace plait {

class collective;
class weave;

namespace detail {
struct lane;
}

/// One coroutine's device work in program order: it remembers what its next operation must follow. Moving a flow to
/// another stream of the device makes that stream wait on the device; the host goes on. The wait is put when the flow
/// next issues something, so that what other flows issue there meanwhile is not held up.
///
/// A flow of a weave passes its turn at every collective; one that begins on a stream by itself has nobody to pass to
/// and is a rank of its own. Model code takes a flow by reference; it outlives the coroutines that issue on it.
class flow {
public:
    /// Begins on `where`, after what was put there. Beside others: weave::operator[].
    explicit flow(stream& where) noexcept
        : where_(&where)
        , last_(where.last())
    {
    }

    /// The stream that the next operation goes to, with what that must follow put before it.
    stream& enter()
    {
        put_waits_on(*where_);
        return *where_;
    }

    /// The newest operation of this flow. Of one in a weave that has issued none, a ticket that has passed.
    ticket last() const noexcept { return last_; }

    /// The operation just put on enter(); backends' operations call this.
    void issued(ticket t) noexcept { last_ = t; }

    /// Later operations of this flow follow `t` on the device.
    void follow(ticket t) { follows_.add(t); }

    /// Later operations go to `next`, after all that this flow has issued so far.
    void move_to(stream& next)
    {
        if (&next == where_) return;
        where_ = &next;
        follows_.add(last_);
    }

    /// Ranks that share the layers of this flow's stage.
    int ranks() const noexcept;

    /// Sums `count` F32 values over the ranks, after all that this flow has issued: see collective_call, also for
    /// `parts`. With one rank and one part nothing is done, and `out` must be `in`. The collective is issued here;
    /// awaiting it passes the turn. Throws what communicator::put throws.
    [[nodiscard]] collective all_reduce(float const* in, float* out, std::int64_t count, std::int32_t parts = 1,
                                        site where = here());
    /// Every rank's `count` elements, in rank order, in `out`. With one rank nothing is done, and `out` must be `in`.
    [[nodiscard]] collective all_gather(element_kind element, void const* in, void* out, std::int64_t count,
                                        site where = here());
    /// `in` holds `count` elements for each rank, `out` gets `count` from each, both in rank order. With one rank
    /// nothing is done, and `out` must be `in`.
    [[nodiscard]] collective all_to_all(element_kind element, void const* in, void* out, std::int64_t count,
                                        site where = here());
    /// To and from the rank of another stage. They go to the copy streams, so that a pass that comes in and one that
    /// goes out do not wait for each other.
    [[nodiscard]] collective send(element_kind element, void const* in, std::int64_t count, int stage,
                                  site where = here());
    [[nodiscard]] collective receive(element_kind element, void* out, std::int64_t count, int stage,
                                     site where = here());

    /// Passes the turn without a collective.
    [[nodiscard]] collective turn() noexcept;

    /// Suspends until every operation of this flow is done. The turn stays.
    ticket::awaiter operator co_await() const noexcept { return last_.operator co_await(); }

private:
    friend collective;
    friend weave;

    void put_waits_on(stream& next)
    {
        for (auto t : follows_.tickets())
            next.wait(t);
        follows_.clear();
    }
    collective issue(communicator& among, stream_role on, collective_call const& call);
    collective among_ranks(collective_call call, site where);
    collective among_stages(stream_role on, collective_call call, site where);

    stream* where_;
    ticket last_;
    ticket_set follows_; ///< what the next operation must follow and where_ does not yet
    detail::lane* lane_ = nullptr;
};

/// A collective that was issued. Awaiting it passes the turn to the next flow of the weave and does not wait for the
/// device: what this flow issues next follows the collective there.
class [[nodiscard]] collective {
public:
    explicit collective(detail::lane* in) noexcept
        : lane_(in)
    {
    }

    bool await_ready() const noexcept { return lane_ == nullptr || alone(); }
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        resumption_.bind(h, its_turn);
        park();
        return true;
    }
    void await_resume() const noexcept {}

private:
    static wait_kind const its_turn;
    bool alone() const noexcept;
    void park() noexcept;

    detail::lane* lane_;
    resumption resumption_;
};

} // namespace plait
