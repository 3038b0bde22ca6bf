#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

#include <plait/actors/time/clock.hpp>
#include <plait/streams/flow.hpp>
#include <plait/streams/host/compute_pool.hpp>
#include <plait/streams/host/doorbell.hpp>
#include <plait/streams/host/meeting.hpp>
#include <plait/streams/operation_info.hpp>
#include <plait/streams/stream.hpp>
#include <plait/streams/trace.hpp>

namespace plait::host {

/// What may stand at the head of a host_stream.
enum class head_kind : std::uint8_t { operation, meeting, wait };

/// When what a busy thread puts on streams is there: one after the other, each some time after the one before. For
/// devices that simulate it.
struct issue_times {
    clock const& time;
    duration each;
    time_point busy_until{};

    time_point next() noexcept { return busy_until = detail::later(std::max(time.now(), busy_until), each); }
};

/// A stream of the host device: a queue of plain functions with their arguments, run in order on the compute pool, and
/// of meetings with other devices.
class host_stream final : public stream {
public:
    /// `bell`: of the device.
    explicit host_stream(std::shared_ptr<doorbell> bell) noexcept
        : bell_(std::move(bell))
    {
    }

    /// Bytes of arguments that an operation may have.
    static constexpr std::size_t argument_bytes = 256;

    /// Puts `op(arguments, share)` on the queue. The arguments are copied; what they point to must live until the
    /// ticket has passed. `Args` is trivially copyable: a plan is data, so nothing is owned by a queued operation.
    template<class Args>
    ticket put(operation_info const& info, void (*op)(Args const&, share), Args const& arguments)
    {
        static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= argument_bytes);
        if (failure()) return issue();
        auto& e = add();
        e.info = info;
        e.step = step();
        e.function = reinterpret_cast<void (*)()>(op);
        e.invoke = [](entry const& self, compute_pool& pool) noexcept {
            pool.run(
                [](void const* at, share part) {
                    auto const& queued = *static_cast<entry const*>(at);
                    Args copy; // the entry's storage is bytes; reading them as Args goes through a copy
                    std::memcpy(&copy, queued.arguments.data(), sizeof(Args));
                    reinterpret_cast<void (*)(Args const&, share)>(queued.function)(copy, part);
                },
                &self);
        };
        std::memcpy(e.arguments.data(), &arguments, sizeof(Args));
        auto t = issue();
        e.value = t.value();
        return t;
    }

    /// Puts a meeting on the queue: the ticket passes when it is over.
    ticket put(operation_info const& info, std::shared_ptr<meeting> with);

    std::shared_ptr<doorbell> const& bell() const noexcept { return bell_; }

    /// What is put from now on is there at the times of `by`, which outlives the stream.
    void put_at(issue_times& by) noexcept { issue_times_ = &by; }
    /// When what is at the head of a queue that is not empty is there; long ago, where nobody says.
    time_point head_ready() const noexcept { return queue_.front().ready; }

    /// True when the head of the queue could run now.
    bool runnable() const noexcept;

    /// Runs what is at the head; runnable() must hold.
    void run_next(compute_pool& pool);

    /// Takes the operation at the head off as if it had run.
    void skip_next() noexcept;

    bool empty() const noexcept { return queue_.empty(); }

    /// What is at the head of a queue that is not empty. Its ticket's value is completed() + 1.
    head_kind head() const noexcept;
    operation_info const& head_info() const noexcept { return queue_.front().info; }

    void record_in(trace_part& where, std::uint32_t track) override;
    /// Where its operations are recorded, the device says when: that what is at the head begins, or has begun before,
    /// and then that it has ended, if it has.
    void note_begin(time_point at) noexcept;
    void note_end(time_point at) noexcept;

private:
    struct entry {
        void (*function)() = nullptr;
        void (*invoke)(entry const&, compute_pool&) noexcept = nullptr; // null: a meeting or a wait
        std::shared_ptr<meeting> with;                                  // null: a wait
        bool arrived = false;                                           // of a meeting: the stream has come to it
        ticket after;                                                   // of a wait: what it waits for
        operation_info info;                                            // not of a wait
        std::int64_t step = 0;                                          // for the record
        std::uint64_t value = 0;
        time_point ready{};
        alignas(16) std::array<std::byte, argument_bytes> arguments;
    };

    /// What is noted of the head.
    struct record {
        trace_part& where;
        std::uint32_t track;
        trace_part::slice head;
        ticket after; // of a wait
    };

    entry& add()
    {
        auto& e = queue_.emplace_back();
        if (issue_times_ != nullptr) e.ready = issue_times_->next();
        return e;
    }
    void put_wait(ticket t) override;
    void drop() noexcept override;
    std::int64_t step() const noexcept { return record_ ? record_->where.step() : 0; }

    std::shared_ptr<doorbell> bell_;
    std::deque<entry> queue_;
    issue_times* issue_times_ = nullptr;
    std::unique_ptr<record> record_;
};

/// Puts a host operation on a flow's stream, which must be a stream of a host device.
template<class Args>
void put(flow& f, operation_info const& info, void (*op)(Args const&, share),
         std::type_identity_t<Args> const& arguments)
{
    f.issued(static_cast<host_stream&>(f.enter()).put(info, op, arguments));
}
template<class Args>
void put(flow& f, void (*op)(Args const&, share), std::type_identity_t<Args> const& arguments)
{
    put(f, {}, op, arguments);
}

} // namespace plait::host
