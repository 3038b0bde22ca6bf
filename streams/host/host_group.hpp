#pragma once

#include <plait/actors/time/clock.hpp>
#include <plait/streams/communicator.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace plait {
class runtime;
} // namespace plait

namespace plait::host {

/// What groups that share devices have in common, so that a wait of one for another is seen. Made by
/// make_host_fabric(); it lives as long as its groups.
class host_fabric;
std::shared_ptr<host_fabric> make_host_fabric();

/// How long data is under way, for tests and benches: a wire where there is only memory.
struct host_link {
    duration latency{};
    double bytes_per_second = 0; ///< 0: infinitely many

    /// Of that many bytes, rounded up to a nanosecond.
    duration time_of(std::int64_t bytes) const noexcept;
};

struct host_group_options {
    host_group_options() = default;

    /// For messages.
    std::string name = "group";
    /// A collective is over that long after the last rank has come to it, by the runtime's clock, and meanwhile keeps
    /// no thread busy. Its bytes are those of the larger of a rank's `in`, one part of it, and `out`.
    host_link link;
    /// Whether each put() is compared at once with what the other ranks have put, and waits that go round in a circle
    /// are looked for. Without, a difference shows when all ranks have come to it, and a circle by `hang_limit`.
#ifdef NDEBUG
    bool check = false;
#else
    bool check = true;
#endif
    /// A rank that waits for the others longer than this, by the runtime's clock, ends the group. max(): never.
    duration hang_limit = std::chrono::seconds(30);
    /// Circles of waits are found among the groups that share one. Null: one of its own.
    std::shared_ptr<host_fabric> fabric;
};

/// A group of host devices in this process; the result is a communicator for each rank, to be moved to the gpu of that
/// rank. No thread ever blocks in a collective: a rank that has come to it lets its device's thread go, and the device
/// that comes last carries it out on its compute pool. So any number of ranks runs on any number of threads, one
/// included.
///
/// What put() takes ends in one of two ways. Either all ranks come to it, or the group fails, for ever: then every
/// device that waits in it, or has put what can't be over any more, fails (device::abort), and put() throws the reason.
/// A group fails by abort(); with `hang_limit`; when a device that takes part fails or goes, with its reason or
/// errc::device_lost; when a communicator goes and others put what it has not (errc::closed); when calls differ
/// (errc::invalid_argument: one of them is wrong); and when waits go round in a circle (errc::deadlock). The texts of
/// the latter two name ranks, calls and their places. When put() throws, what the rank has put before may go on for a
/// moment: its memory is free when its tickets are over, as ever.
///
/// A broadcast and a send wait for those who receive. A device's gpu must have taken a flow before the first put(), and
/// a communicator is used with one device. The communicators, and the devices that they were used with, go before `rt`.
/// Throws error(errc::invalid_argument) for a size below 1.
std::vector<std::unique_ptr<communicator>> make_host_group(runtime& rt, int size, host_group_options options = {});

} // namespace plait::host
