#pragma once

#include <plait/actors/tasks/task.hpp>
#include <plait/streams/device.hpp>
#include <plait/streams/flow.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <span>
#include <vector>

namespace plait {

/// The groups that a rank is in. Null: it is alone.
struct rank_groups {
    communicator* tensor = nullptr; ///< ranks that share every layer of a stage
    communicator* stages = nullptr; ///< ranks that hold the same shard of different layers; rank = stage
};

namespace detail {

/// A flow's place in a weave. Lanes exist on the host only.
struct lane {
    lane(weave& in, stream& where) noexcept
        : owner(in)
        , strand(where)
    {
    }

    enum class state : std::uint8_t {
        idle,   ///< nothing of it has begun, or what had has ended
        runs,   ///< has the turn; while it waits for the device, too
        parked, ///< has passed its turn and waits for the next
    };

    weave& owner;
    flow strand;
    std::deque<task<>> bodies; ///< that begin when those before them have ended
    task<> body;
    state now = state::idle;
    resumption* waiting = nullptr; ///< parked
};

} // namespace detail

/// Runs several flows on one device, taking turns. A turn goes on until its flow awaits a collective or turn(), or
/// ends; then the next lane has it, round-robin. Any other wait keeps the turn. So the order in which operations are
/// issued is a function of what runs, never of timing, and ranks that run the same issue the same.
///
/// One body of code serves overlap on and off: lanes past the last fold onto it, and what is given to one lane runs one
/// after the other there. `weave w(device, 1)` runs `w.run(a(w[0]), b(w[1]))` as a, then b.
///
/// Made, used and destroyed on the device's gpu, in the coroutine that runs it.
class weave {
public:
    /// `lanes` flows that begin on the compute stream.
    weave(device& on, std::size_t lanes, rank_groups groups = {});
    /// Flows that begin on these streams, lane by lane.
    weave(device& on, std::span<stream_role const> lanes, rank_groups groups = {});
    weave(weave const&) = delete;
    weave& operator=(weave const&) = delete;

    /// The flow of a lane, or of the last one.
    flow& operator[](std::size_t lane) noexcept
    {
        return lanes_[lane < lanes_.size() ? lane : lanes_.size() - 1].strand;
    }
    std::size_t lanes() const noexcept { return lanes_.size(); }

    /// Runs one task a lane until all have ended, lane 0 first; the task of lane i issues on (*this)[i]. Returns when
    /// everything is issued, which is before it is done. A task that throws ends its lane and aborts the groups, so
    /// that no rank waits for what it does not issue; the first failure is thrown when all lanes have ended. Nothing
    /// here is cancelled: a stop of the caller is not seen by the tasks.
    task<> run(std::vector<task<>> tasks);
    template<class... Tasks>
        requires(std::convertible_to<Tasks, task<>> && ...)
    task<> run(Tasks... tasks)
    {
        std::vector<task<>> all;
        (all.push_back(std::move(tasks)), ...);
        return run(std::move(all));
    }

    device& on() const noexcept { return device_; }
    rank_groups const& groups() const noexcept { return groups_; }

private:
    friend class collective;
    class end_of_all;
    struct pump_work : work {
        weave* self = nullptr;
    };

    void begin(detail::lane& l) noexcept;
    void ended(detail::lane& l) noexcept;
    bool has_work(detail::lane const& l) const noexcept
    {
        return l.now != detail::lane::state::idle || !l.bodies.empty();
    }
    void pass_turn() noexcept;
    void pump() noexcept;
    void pump_later() noexcept;

    device& device_;
    rank_groups groups_;
    std::deque<detail::lane> lanes_; // they stay where they are
    task_context context_;           ///< of the tasks
    std::size_t turn_ = 0;
    std::size_t live_ = 0; ///< lanes that have something to run
    bool pumping_ = false;
    pump_work pump_;
    resumption* all_ended_ = nullptr;
    std::exception_ptr failure_;
};

} // namespace plait
