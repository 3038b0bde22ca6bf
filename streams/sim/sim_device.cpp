#include <plait/streams/sim/sim_device.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/time/alarm.hpp>

namespace plait::sim {

namespace {

double seconds(std::int64_t amount, double per_second) noexcept
{
    return per_second > 0 ? static_cast<double>(amount) / per_second : 0;
}

} // namespace

duration roofline::operator()(operation_info const& what) const noexcept
{
    auto const slower = std::max(seconds(what.bytes, bytes_per_second), seconds(what.flops, flops_per_second));
    return launch + duration(static_cast<std::int64_t>(std::ceil(slower * 1e9)));
}

/// Has the device polled at a time. It rings on the pool, for the device's loop may end before.
struct sim_device::wake_up : alarm {
    wake_up(clock& c, executor& where, std::shared_ptr<host::doorbell> to_ring) noexcept
        : alarm(c, where, ring)
        , bell(std::move(to_ring))
    {
    }

    static void ring(alarm& rung) noexcept
    {
        auto const self = std::move(static_cast<wake_up&>(rung).self);
        self->waits.store(false, std::memory_order_release); // the device may set it again from here on
        self->bell->ring();
    }

    std::shared_ptr<host::doorbell> bell;
    std::shared_ptr<wake_up> self;   ///< while it is set
    std::atomic<bool> waits = false; ///< the device sets it, the ring resets it
    time_point at;                   ///< the device's
};

sim_device::sim_device(runtime& home, std::size_t memory_limit, sim_options options)
    : home_(home)
    , memory_(options.name, memory_limit)
    , options_(std::move(options))
    , issue_times_{home.clock(), options_.issue}
    , worker_(std::make_shared<host::compute_pool>(home, 1))
    , wake_up_(std::make_shared<wake_up>(home.clock(), home.pool(), bell_))
{
    if (options_.issue <= duration{}) return;
    for (auto& l : lines_)
        l.queue.put_at(issue_times_);
}

sim_device::~sim_device()
{
    // As on the host: what was put still runs, at once, so that an operation never sees its memory freed early.
    while (step(home_.clock().now(), time_point::max())) {
    }
    if (!std::ranges::all_of(lines_, [](line const& l) { return l.queue.empty(); }))
        abort(
            std::make_exception_ptr(error(errc::device_lost, "a simulated device went in the middle of a collective")));
    if (wake_up_->cancel()) wake_up_->self = nullptr;
    bell_->close();
    reap_all();
}

bool sim_device::poll()
{
    if (auto why = bell_->failure()) {
        abort(std::move(why));
        return true;
    }
    auto const now = home_.clock().now();
    if (step(now, now)) return true;
    wake_at_next();
    return false;
}

/// One event: the first operation that ends, until `horizon`, and what begins with it; or, after all of those, what the
/// host has put. False when nothing was left to do.
bool sim_device::step(time_point now, time_point horizon) noexcept
{
    if (auto* const first = next_to_end(horizon)) {
        auto const at = first->end;
        end(*first);
        settle(at, at == now);
        return true;
    }
    settle(now, true);
    for (auto& l : lines_)
        l.seen = l.queue.issued();
    return next_to_end(horizon) != nullptr;
}

sim_device::line* sim_device::next_to_end(time_point horizon) noexcept
{
    line* first = nullptr;
    for (auto& l : lines_) {
        if (l.queue.empty()) l.runs = false; // it has failed
        if (l.runs && l.end <= horizon && (first == nullptr || l.end < first->end)) first = &l;
    }
    return first;
}

void sim_device::end(line& l) noexcept
{
    l.runs = false;
    if (options_.compute)
        l.queue.run_next(*worker_);
    else
        l.queue.skip_next();
    l.queue.note_end(l.end);
    reap();
}

/// Begins at `at` what can, on every stream.
void sim_device::settle(time_point at, bool host_is_there) noexcept
{
    for (bool moved = true; moved;) {
        moved = false;
        for (auto& l : lines_)
            while (!l.runs && l.queue.runnable()) {
                auto const what = l.queue.head();
                // Collectives go by the clock, which the host reads.
                if (!host_is_there && (what == host::head_kind::meeting || l.queue.completed() >= l.seen)) break;
                auto const begin = std::max(at, l.queue.head_ready());
                if (what == host::head_kind::meeting && begin > at) break; // others would see it early
                l.queue.note_begin(begin);
                if (what == host::head_kind::operation) {
                    auto const cost = options_.cost ? options_.cost(l.queue.head_info()) : duration{};
                    l.end = detail::later(begin, std::max(cost, duration{}));
                    l.runs = true;
                } else {
                    l.queue.run_next(*worker_);
                    l.queue.note_end(at);
                    moved = true;
                }
            }
    }
}

/// When an operation ends, or when a collective is there that the host is still busy with.
void sim_device::wake_at_next() noexcept
{
    auto next = time_point::max();
    if (auto const* const first = next_to_end(time_point::max())) next = first->end;
    for (auto const& l : lines_)
        if (!l.runs && l.queue.runnable()) next = std::min(next, l.queue.head_ready());
    if (next == time_point::max()) return;
    if (wake_up_->waits.load(std::memory_order_acquire)) {
        if (wake_up_->at <= next) return;
        if (!wake_up_->cancel()) return; // it rings, and the device is polled after
        wake_up_->self = nullptr;
    }
    wake_up_->at = next;
    wake_up_->self = wake_up_;
    wake_up_->waits.store(true, std::memory_order_relaxed);
    wake_up_->set(next);
}

} // namespace plait::sim
