#pragma once

#include <plait/actors/actor.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/simulation/split_mix.hpp>
#include <plait/actors/sync/ring.hpp>
#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace plait {

/// Who starts again when a child has failed.
enum class restarts : std::uint8_t {
    one_for_one, ///< the child that failed
    one_for_all, ///< all children, in the order in which they were spawned: they depend on each other
};

struct supervisor_options {
    restarts strategy = restarts::one_for_one;
    /// More restarts than this within `window`, and the failure is the supervisor's own.
    unsigned most = 3;
    duration window = std::chrono::seconds(5);
    /// Before a restart; doubles with each one in the window, up to the longest.
    duration first_delay{};
    duration longest_delay = std::chrono::seconds(10);
    /// Part of a delay that is left to chance, from 0 to 1, so that many do not come back at the same moment.
    double jitter = 0.2;
};

/// An actor that looks after others. A child fails when a method that it was told throws: what it is asked fails at the
/// asker. Then its other methods are asked to stop, its object is destroyed and constructed again from the same
/// arguments, and it goes on with the messages that its mailbox has kept; its handles stay good. A message that failed
/// is not run again.
///
/// A child that has `hand_over()` is asked for what its successor shall have, which is constructed with it as a last
/// argument. If it throws, or a constructor does, the restart has failed, which counts like any failure, and the next
/// attempt begins with the arguments alone.
///
/// Children live as long as their supervisor: when it stops, they are stopped first, youngest first, and waited for.
/// One that is stopped by somebody else, or ends for want of messages, is forgotten. A failure that passes the limit is
/// the supervisor's own: its supervisor restarts it with its children, which keep their handles, or, at the root,
/// `runtime_options::on_unhandled` hears of the child's failure and the supervisor stops.
class supervisor : public actor {
public:
    explicit supervisor(supervisor_options options = {});

    /// Makes a child in the runtime's pool. The arguments are copied: a restart needs them again.
    template<class A, class... Args>
    static ref<A> spawn(ref<supervisor> const& above, Args&&... arguments)
    {
        auto& home = detail::ref_access::core(above)->home().owner;
        return spawn_at<A>(above, home.pool(), {}, std::forward<Args>(arguments)...);
    }

    /// The same on a loop of its own, as runtime::spawn_on.
    template<class A, class... Args>
    static ref<A> spawn_on(ref<supervisor> const& above, std::shared_ptr<event_loop> place, Args&&... arguments)
    {
        auto& loop = *place;
        return spawn_at<A>(above, loop, std::move(place), std::forward<Args>(arguments)...);
    }

    struct child {
        child(std::uint64_t i, ref<actor> h) noexcept
            : id(i)
            , handle(std::move(h))
        {
        }
        std::uint64_t id;
        ref<actor> handle;
        bool down = false;
    };
    using family = std::vector<child>;

    // What its own supervisor and the runtime need.
    supervisor(supervisor_options options, family children);
    explicit supervisor(family children)
        : supervisor(supervisor_options(), std::move(children))
    {
    }
    family hand_over() noexcept { return std::move(children_); }
    void restarted();
    task<> stopping();

private:
    class link;

    template<class A, class... Args>
    static ref<A> spawn_at(ref<supervisor> const& above, executor& place, std::shared_ptr<void> share,
                           Args&&... arguments)
    {
        auto& home = detail::ref_access::core(above)->home().owner;
        auto by = make_link(above);
        auto made = home.spawn_restartable<A>(place, std::move(share), by.first, std::forward<Args>(arguments)...);
        adopt_from_outside(above, by.second, made);
        return made;
    }

    static std::pair<std::shared_ptr<detail::guardian>, std::uint64_t> make_link(ref<supervisor> const& above);
    static void adopt_from_outside(ref<supervisor> const& above, std::uint64_t id, ref<actor> const& handle);

    void adopt(std::uint64_t id, ref<actor> handle);
    task<> child_down(std::uint64_t id, std::optional<failure> what);
    void child_gone(std::uint64_t id);

    child* find(std::uint64_t id) noexcept;
    duration next_delay();
    void escalate(failure const& what);
    void pause_all();
    void restart_all_when_down();

    supervisor_options options_;
    family children_;
    std::vector<std::pair<std::uint64_t, std::optional<failure>>> early_; ///< fell before they were adopted
    detail::ring<time_point> restarts_;                                   ///< those in the window
    unsigned delayed_ = 0;                                                ///< restarts that wait for their time
    bool restarting_all_ = false;
    detail::split_mix random_;
};

} // namespace plait
