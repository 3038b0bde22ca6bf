#pragma once

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plait {

/// Decides what happens next where several things could. A choice between n things is a number below n.
class chooser {
public:
    virtual ~chooser();
    virtual std::uint32_t choose(std::uint32_t n) noexcept = 0;
};

struct simulation_options : runtime_hooks {
    simulation_options() { find_ask_cycles = true; }

    std::uint64_t seed = 1;
    /// Decides instead of the seed; outlives the simulation.
    plait::chooser* chooser = nullptr;
    /// Threads that the pool behaves as if it had: with several, any of the actors that are ready may go first.
    unsigned threads = 2;
    /// One step in so many lets time pass to the next timer although something else could run: a slow machine. 0:
    /// never.
    std::uint32_t slowness = 16;
    /// How far time may pass at once in that way: a machine that is slow, not one that sleeps.
    duration longest_stall = std::chrono::milliseconds(100);
    /// Whether an ask of an idle actor on the same thread may be a direct call, as it is on a real machine. Each step
    /// then chooses; without, every ask is a message, and there are fewer runs to explore.
    bool direct_calls = true;
    /// Faults, such as every real machine has. One timer in so many fires late, by `latest` at most. 0: none.
    std::uint32_t late_timers = 0;
    duration latest = std::chrono::milliseconds(100);
    /// One step in so many holds back a loop, or an actor of the pool, for `longest_hold` at most, while all others go
    /// on: a thread that the system does not run. 0: none.
    std::uint32_t held_places = 0;
    duration longest_hold = std::chrono::seconds(1);
    /// After so many steps a run is over: errc::deadlock, since something goes on for ever without getting anywhere.
    /// Its end may take as many again.
    std::uint64_t most_steps = 10'000'000;
};

/// A runtime without threads: everything runs on the thread that calls `run`, in virtual time, in an order that depends
/// on the seed alone. The same program, as it is, runs in it: it asks its runtime for actors, loops, time and random
/// numbers. What is ready at a moment (an actor with a message, a loop with works, a device, a timer) could run next on
/// a real machine in some order; each step takes one of them.
///
/// The same seed gives the same run, step by step, with every compiler; `trace` tells runs apart. It is used on the
/// thread that made it, and nothing may come in from another one.
class simulation {
public:
    /// An action that may happen; not any more when this has gone.
    class fault {
    private:
        friend simulation;
        explicit fault(std::shared_ptr<void const> action) noexcept
            : action_(std::move(action))
        {
        }
        std::shared_ptr<void const> action_;
    };

    explicit simulation(simulation_options options = {});
    ~simulation();

    runtime& home() noexcept { return *home_; }

    /// Runs `t` until it ends. error(errc::deadlock) when it waits for what can't happen, or passes `most_steps`: then
    /// it is stopped first. If that does not end it either, the runtime and all in it are left in memory for good.
    template<class T>
    T run(task<T> t)
    {
        return home_->run(std::move(t));
    }

    /// Calls `action` before a step, with a chance of one in `one_in`, for as long as the result lives. It is for
    /// faults: it stops or crashes an actor, closes a channel, requests a stop, or does anything else that another
    /// thread could do, and does not throw. Never for 0.
    [[nodiscard]] fault sometimes(std::uint32_t one_in, std::function<void()> action);

    /// A number below `n`, which is not 0, from the same source as the order: for what an action, or a test, leaves
    /// open.
    std::uint32_t choose(std::uint32_t n) noexcept;

    /// Virtual time; it begins at 0.
    time_point now() const noexcept;
    std::uint64_t steps() const noexcept;
    /// A hash of all steps so far.
    std::uint64_t trace() const noexcept;

private:
    class world;
    world* world_; ///< the runtime owns it
    std::unique_ptr<runtime> home_;
};

/// What an exploration has found.
struct exploration {
    std::uint64_t runs = 0;
    bool orders = false;                ///< all orders were explored, not seeds
    bool complete = false;              ///< every interleaving was run
    std::exception_ptr failure;         ///< the first, or null
    std::uint64_t seed = 0;             ///< of the last run, when seeds were explored: the one that failed
    std::vector<std::uint32_t> choices; ///< of the run that failed, when all orders were explored: for replay()
};

/// Runs `body` in a simulation for each of `count` seeds from `first` on; stops at the first that throws.
exploration explore_seeds(std::function<void(simulation&)> const& body, std::uint64_t first, std::uint64_t count,
                          simulation_options options = {});

/// Runs `body` in every order that its steps can have, or the first `most` of them in depth-first order; stops at the
/// first that throws. Time passes only when nothing else can happen, asks are messages, and no faults of the options
/// happen. For a handful of steps: the
/// number of orders grows as a factorial. `body` must depend on nothing but the order (else errc::invalid_argument is
/// the failure), and must not poll: the first order tried starves whoever it polls for.
exploration explore_all(std::function<void(simulation&)> const& body, std::uint64_t most,
                        simulation_options options = {});

/// What was found, in words, and how to see a failure again.
std::string describe(exploration const& found);

/// Runs `body` once more as a failed exploration did. error(errc::invalid_argument) when it, or the options, are
/// others.
void replay(std::function<void(simulation&)> const& body, std::vector<std::uint32_t> choices,
            simulation_options options = {});

} // namespace plait
