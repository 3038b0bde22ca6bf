#pragma once

#include <plait/actors/error.hpp>
#include <plait/streams/host/group_round.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/streams/host/host_stream.hpp>

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace plait::host {

class host_fabric {
public:
    std::mutex mutex; ///< of all its groups
    /// The collective that each stream waits in, of the groups that check.
    std::map<host_stream const*, group_round*> heads;
};

/// What the communicators of a group share, and the collectives that they have put.
class group_core final : public doorbell::listener, public std::enable_shared_from_this<group_core> {
public:
    group_core(runtime& rt, int size, host_group_options options);
    group_core(group_core const&) = delete;
    group_core& operator=(group_core const&) = delete;
    ~group_core() override;

    int size() const noexcept { return static_cast<int>(members_.size()); }
    std::string const& name() const noexcept { return options_.name; }

    /// This rank's side of a collective, to be put on `on`. Throws the group's failure, or causes it.
    std::shared_ptr<meeting> enter(int rank, host_stream const& on, collective_call const& call);
    void abort(std::exception_ptr why) noexcept;
    /// The rank puts nothing more.
    void leave(int rank) noexcept;
    void device_failed(doorbell const& of, std::exception_ptr why) noexcept override;
    std::exception_ptr failure() const noexcept;

    /// Of a side that was entered; see meeting.
    void arrive(group_round& r, std::size_t side, compute_pool& pool) noexcept;
    void withdraw(group_round& r, std::exception_ptr why) noexcept;

private:
    friend struct group_round;
    using round = group_round;

    struct member {
        std::shared_ptr<doorbell> bell; ///< of its device, from its first collective on
        bool left = false;
        std::exception_ptr lost; ///< why its device has failed
    };
    /// Collectives in their order, from the oldest that is not over. Each rank adds to it at its own place.
    struct queue {
        std::deque<std::shared_ptr<round>> rounds;
        std::int64_t first = 0;          ///< the number of the oldest
        std::map<int, std::int64_t> put; ///< how many each rank has put
    };
    struct watch : alarm {
        using alarm::alarm;
        std::shared_ptr<group_core> self; ///< while it is set
    };

    void landed(round& r) noexcept;

    // All that follows is called under the fabric's mutex.
    template<class Visit>
    void each_round(Visit visit);
    round& round_of(int rank, collective_call const& call, std::size_t& side);
    void agree(round& r, std::size_t one, std::size_t other);
    bool agrees(round& r) noexcept;
    bool break_circle(round& r) noexcept;
    void wait_for_others(round& r, std::size_t side) noexcept;
    void complete(round& r, std::size_t by) noexcept;
    void forget_finished() noexcept;
    void fail(std::exception_ptr const& why) noexcept;
    [[noreturn]] void refuse(errc code, std::string const& why);
    void fail_those_who_wait_for(int rank) noexcept;
    void fail_without(int rank, round const& r, std::size_t side) noexcept;
    void watch_over(round const& r) noexcept;
    void stop_watching() noexcept;
    void look_for_hang() noexcept;
    std::string hang_text(round const& r) const;

    host_group_options options_;
    std::shared_ptr<host_fabric> fabric_;
    clock& clock_;
    executor& pool_; ///< where alarms ring
    std::vector<member> members_;
    int present_; ///< members that have not left
    queue collectives_;
    std::map<std::pair<int, int>, queue> pairs_; ///< from one rank to another
    std::exception_ptr failure_;
    watch watch_;
};

} // namespace plait::host
