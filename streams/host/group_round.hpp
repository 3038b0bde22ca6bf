#pragma once

#include <plait/actors/time/alarm.hpp>
#include <plait/streams/communicator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace plait::host {

class group_core;
class host_stream;

/// One collective of a group: what its ranks have put, and how far it has come. A send and its receive are one too.
/// Everything is guarded by the mutex of the group's fabric, but for what is said here.
struct group_round : std::enable_shared_from_this<group_round> {
    /// gathering → running → over, or travelling between the last two, where there is a link. From gathering and
    /// travelling it may fail. Written under the mutex; devices read `over` without. While it is running `calls`
    /// belongs to who carries it out, and `carrying` is held.
    enum class stage : std::uint8_t { gathering, running, travelling, over, failed };

    struct side {
        int rank = 0;
        bool put = false;
        bool arrived = false;            ///< its stream has come to it
        host_stream const* on = nullptr; ///< the stream that it was put on
    };

    /// Rings when the data has travelled.
    struct flight : alarm {
        using alarm::alarm;
        std::shared_ptr<group_round> self; ///< while it is set
    };

    group_round(std::shared_ptr<group_core> of, std::vector<int> const& ranks);

    std::shared_ptr<group_core> group;
    std::vector<side> sides;
    std::vector<collective_call> calls; ///< of the sides that have put theirs
    std::size_t arrivals = 0;
    time_point since; ///< when the first arrived
    std::atomic<stage> at = stage::gathering;
    std::mutex carrying;
    flight arrival;
};

/// What differs between two calls that should agree, or null.
char const* difference(collective_call const& one, collective_call const& other) noexcept;

/// "rank 1's all_reduce of 1000 f32 in group tp, put at model.cpp:17".
std::string text_of(group_round const& r, std::size_t side);

} // namespace plait::host
