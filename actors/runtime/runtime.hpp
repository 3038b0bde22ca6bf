#pragma once

#include <plait/actors/actor.hpp>
#include <plait/actors/restartable_cell.hpp>
#include <plait/actors/runtime/blocked.hpp>
#include <plait/actors/runtime/machine.hpp>
#include <plait/actors/runtime/run_registry.hpp>
#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// What a runtime notes and tells, whatever it runs on.
struct runtime_hooks {
    runtime_hooks() = default; // g++ 12 takes the base of an aggregate for uninitialised without it
    /// Hears of a told method that threw, on the actor's executor; must not throw. Without it the failure stops the
    /// tasks that `run` drives, and the next `run` to end throws it.
    std::function<void(failure const&)> on_unhandled;
    /// Whether each actor counts its messages and its time, for `activity`. Off, it costs nothing.
    bool counters = false;
    /// Whether an ask that can never end, since exclusive sections and asks wait for each other in a cycle, ends with
    /// `errc::deadlock` and a text that names the cycle.
#ifdef NDEBUG
    bool find_ask_cycles = false;
#else
    bool find_ask_cycles = true;
#endif
};

struct runtime_options : runtime_hooks {
    /// Threads of the shared pool, where actors live that were not placed elsewhere.
    unsigned threads = 1;
    /// The time that tasks see; null for the machine's monotonic clock. Outlives the runtime, and with `counters` the
    /// executors on which its actors were placed.
    plait::clock* clock = nullptr;
    /// Hears of an actor that keeps a thread of the runtime for longer than `longest_turn` without an await: it blocks,
    /// or it computes what belongs on a thread of its own. Once for each such step, on a thread of the watchdog's,
    /// while the actor is still at it; must not throw, and not start or end loops. Without it there is no watchdog.
    std::function<void(blocked const&)> on_blocked;
    duration longest_turn = std::chrono::milliseconds(100);
    /// The name of the pool's threads.
    std::string name = "plait";
};

/// Threads, time and randomness come from here only, and everything that it starts ends with it.
///
/// The destructor stops and joins the tasks that async_start began, then the actors that are left, youngest first, and
/// ends the threads. It must not run on one of them. Handles may outlive it (their actors have stopped), but no thread
/// may use one while it runs.
class runtime {
public:
    explicit runtime(runtime_options const& options = {});
    /// On something else than threads: see simulation.
    explicit runtime(std::unique_ptr<detail::machine> below, runtime_hooks hooks = {});
    runtime(runtime const&) = delete;
    runtime& operator=(runtime const&) = delete;
    ~runtime();

    /// Runs `t` on the calling thread until it ends, and gives its value or throws. `stop` asks it to end early.
    template<class T>
    T run(task<T> t, stop_token stop = {})
    {
        if (!t) throw error(errc::invalid_argument, "ran an empty task");
        result<T> outcome;
        drive_job<T> job(std::move(t), outcome);
        drive(job, stop);
        return std::move(outcome).value();
    }

    /// Makes an actor in the shared pool. What its constructor throws comes out of here.
    template<class A, class... Args>
    ref<A> spawn(Args&&... args)
    {
        return spawn_on<A>(pool(), std::forward<Args>(args)...);
    }

    /// Makes an actor whose works run on `place`, which outlives the actor.
    template<class A, class... Args>
    ref<A> spawn_on(executor& place, Args&&... args)
    {
        return spawn_at<A>(place, {}, owns(place), std::forward<Args>(args)...);
    }

    /// The same for an actor that needs a thread of its own: it shares the loop of new_loop() and lets go of it when it
    /// has been destroyed and no handle to it is left.
    template<class A, class... Args>
    ref<A> spawn_on(std::shared_ptr<event_loop> place, Args&&... args)
    {
        auto& loop = *place;
        return spawn_at<A>(loop, std::move(place), true, std::forward<Args>(args)...);
    }

    /// Starts a thread with a loop. The thread ends after what is queued when the last owner lets go, on whatever
    /// thread, and with the runtime at the latest. Throws error(errc::invalid_argument) for a processor that this
    /// process may not use.
    std::shared_ptr<event_loop> new_loop(loop_options const& options);
    std::shared_ptr<event_loop> new_loop(std::string name);

    /// The shared pool, as something to place actors on. With several threads it is not serial: never a coroutine's
    /// own executor.
    executor& pool() noexcept;

    /// Whether it stands on a simulation: one thread, which may not block.
    bool simulated() const noexcept;
    /// Whether a loop of new_loop() is a thread of its own, so that a work on it may block.
    bool has_threads() const noexcept;
    plait::clock& clock() noexcept;
    /// Unpredictable bits from the system.
    std::uint64_t random_seed();
    /// Actors that have not been destroyed.
    std::size_t actors() const noexcept;

    /// Calls `hook` with what happens to actors from now on, until the result goes. It is called where it happens, on
    /// the actor's executor or in a spawn, one call at a time; it is short and must not throw.
    lifecycle_subscription on_lifecycle(std::function<void(lifecycle_event const&)> hook);
    /// What each living actor has done, oldest first; empty without `counters`.
    std::vector<actor_activity> activity() const;

    /// The processors that this process may use: affinity and the cgroup's quota, at least 1.
    static unsigned available_cpus() noexcept;

    /// For `async_start`, `dump` and `shutdown`: the tasks that were started from outside, and the actors.
    detail::run_registry& runs() noexcept;
    std::shared_ptr<detail::actor_registry> registry() noexcept;

    /// For `asio_runtime`: stops and joins tasks and actors in the destructor's order, without blocking. `then` runs on
    /// whatever ended last, and only enqueues. Nothing is started meanwhile or later.
    void wind_down(work& then) noexcept;

private:
    friend supervisor;
    static constexpr std::uint64_t mailbox_bound = 256;
    struct state;

    /// A task that `drive` runs, whatever its type.
    struct job_base {
        virtual void start(task_context& context, void (*ended)(void*) noexcept, void* owner) noexcept = 0;
        virtual void finish() noexcept = 0;
        /// Never ends: its frame is left as it is.
        virtual void abandon() noexcept = 0;

    protected:
        ~job_base() = default;
    };
    template<class T>
    struct drive_job final : job_base {
        drive_job(task<T> t, result<T>& outcome) noexcept
            : task_(std::move(t))
            , outcome_(outcome)
        {
        }
        void start(task_context& context, void (*ended)(void*) noexcept, void* owner) noexcept override
        {
            detail::task_access::start(task_, context, ended, owner);
        }
        void finish() noexcept override
        {
            outcome_ = detail::task_access::take(task_);
            task_ = {};
        }
        void abandon() noexcept override { detail::keep_for_good(new task<T>(std::move(task_))); }
        task<T> task_;
        result<T>& outcome_;
    };

    template<class A, class... Args>
    ref<A> spawn_at(executor& place, std::shared_ptr<void> share, bool owned, Args&&... args)
    {
        static_assert(std::derived_from<A, actor>, "an actor derives from plait::actor");
        auto core = std::make_unique<detail::actor_cell<A>>(place, registry(), mailbox_bound);
        auto& object = core->construct(std::forward<Args>(args)...);
        return settle(std::move(core), object, std::move(share), owned);
    }

    template<class A, class... Args>
    ref<A> spawn_restartable(executor& place, std::shared_ptr<void> share, std::shared_ptr<detail::guardian> by,
                             Args&&... args)
    {
        static_assert(std::derived_from<A, actor>, "an actor derives from plait::actor");
        using cell = detail::restartable_cell<A, std::decay_t<Args>...>;
        auto core = std::make_unique<cell>(place, registry(), mailbox_bound, std::forward<Args>(args)...);
        auto& object = core->construct_with();
        core->watched_by(std::move(by));
        return settle(std::move(core), object, std::move(share), owns(place));
    }

    template<class Cell, class A>
    ref<A> settle(std::unique_ptr<Cell> core, A& object, std::shared_ptr<void> share, bool owned)
    {
        core->keep(std::move(share));
        if (counts()) core->count();
        registry()->add(*core, owned);
        return detail::ref_access::adopt(*core.release(), object);
    }

    void drive(job_base& job, stop_token stop);
    bool counts() const noexcept;
    bool owns(executor const& place) noexcept;

    std::shared_ptr<state> state_; ///< shared with the cores of actors, which handles may keep longer
};

} // namespace plait
