#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <plait/actors/time/clock.hpp>
#include <plait/streams/device.hpp>
#include <plait/streams/host/host_stream.hpp>
#include <plait/streams/host/mapped_memory.hpp>
#include <plait/streams/operation_info.hpp>

namespace plait {
class runtime;
} // namespace plait

namespace plait::sim {

/// How long an operation keeps its stream busy; less than nothing counts as nothing. Called on the threads of the
/// devices that have a copy of it. Must not throw.
using cost_function = std::function<duration(operation_info const&)>;

/// The slower of two limits, and a fixed time before: `launch` + max(bytes / bytes_per_second, flops /
/// flops_per_second), rounded up to a nanosecond. A rate of 0 is no limit. (Williams, Waterman and Patterson,
/// doi:10.1145/1498765.1498785.)
struct roofline {
    double bytes_per_second = 0;
    double flops_per_second = 0;
    duration launch{};

    duration operator()(operation_info const& what) const noexcept;
};

struct sim_options {
    sim_options() = default;

    std::string name = "simulated device"; ///< for people
    cost_function cost;                    ///< of every operation but collectives; empty: they take no time
    /// How long the gpu's thread is busy with each operation, wait or collective that it puts on a stream: it is there
    /// that much later, and the next one after it. So a host that is slow to issue costs time, unless it runs ahead.
    duration issue{};
    /// Whether operations compute what they are. Without, memory stays as it is: for time alone.
    bool compute = true;
};

/// A device whose streams run side by side, in the time of its runtime: in a simulation that is virtual, and exact.
/// An operation begins when its stream has come to it and is free, takes what the cost function says, and computes
/// at its end, as the host device would: so what runs on it gives the same values, at other times. It takes host
/// operations (host::put) and the collectives of a host group, whose link says how long they are under way.
///
/// The times of operations do not depend on when the host looks: one that follows another begins when that ends. Only
/// what the host puts on a stream, and collectives, begin when the host is there (sim_options::issue).
class sim_device final : public device {
public:
    /// `memory_limit`: the most bytes that allocate() hands out. Goes before `home`.
    sim_device(runtime& home, std::size_t memory_limit, sim_options options);
    ~sim_device() override;

    device_kind kind() const noexcept override { return device_kind::simulated; }
    std::string description() const override { return options_.name; }
    stream& stream_of(stream_role role) noexcept override { return lines_[static_cast<std::size_t>(role)].queue; }
    std::byte* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
    void deallocate(std::byte* memory, std::size_t bytes) noexcept override { memory_.deallocate(memory, bytes); }
    bool poll() override;
    void driven_by(event_loop& home) noexcept override { bell_->open(home); }

private:
    struct wake_up;
    /// A stream and the operation at its head.
    struct line {
        explicit line(std::shared_ptr<host::doorbell> bell) noexcept
            : queue(std::move(bell))
        {
        }
        host::host_stream queue;
        bool runs = false;      ///< the operation at the head has begun
        time_point end;         ///< and ends then
        std::uint64_t seen = 0; ///< newest ticket when the host looked last: what comes after it can't begin before
    };

    bool step(time_point now, time_point horizon) noexcept;
    line* next_to_end(time_point horizon) noexcept;
    void end(line& l) noexcept;
    void settle(time_point at, bool host_is_there) noexcept;
    void wake_at_next() noexcept;

    runtime& home_;
    host::mapped_memory memory_;
    sim_options options_;
    host::issue_times issue_times_;
    std::shared_ptr<host::compute_pool> worker_; ///< the gpu's own thread
    std::shared_ptr<host::doorbell> bell_ = std::make_shared<host::doorbell>();
    std::array<line, stream_roles> lines_{line(bell_), line(bell_), line(bell_), line(bell_), line(bell_)};
    std::shared_ptr<wake_up> wake_up_;
};

} // namespace plait::sim
