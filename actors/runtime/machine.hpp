#pragma once

#include <plait/actors/runtime/event_loop.hpp>
#include <plait/actors/runtime/loop_options.hpp>
#include <plait/actors/time/clock.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace plait::detail {

struct condition;

/// Keeps what can be neither used nor destroyed any more, where leak checkers see that it is on purpose.
void keep_for_good(void* what) noexcept;

/// What a runtime runs on: threads and the machine's clock, or a simulation. Everything that depends on the world comes
/// through here, so the rest of plait is the same in both.
class machine {
public:
    machine() = default;
    machine(machine const&) = delete;
    machine& operator=(machine const&) = delete;
    virtual ~machine();

    virtual bool simulated() const noexcept = 0;
    /// Whether a loop is a thread, so that a work on it may block.
    virtual bool has_threads() const noexcept { return !simulated(); }
    virtual plait::clock& clock() noexcept = 0;
    virtual std::uint64_t random_seed() = 0;

    /// Where actors live that were not placed elsewhere. May run several works at once.
    virtual executor& pool() noexcept = 0;
    /// A loop beside all others; it lives until the machine goes, or some time after end_loop(). Throws
    /// error(errc::invalid_argument) where the options can't be kept.
    virtual event_loop& start_loop(loop_options const& options) = 0;
    /// Nothing is posted to `loop` any more; ignored when the machine has ended.
    virtual void end_loop(event_loop& loop) noexcept = 0;
    /// Whether `place` is one of the above.
    virtual bool owns(executor const& place) noexcept = 0;

    enum class outcome : std::uint8_t {
        ended,       ///< by `end`
        stuck,       ///< nothing can happen any more that would call it
        endless,     ///< more has happened than the simulation allows
        interrupted, ///< by what is not plait's, as `why` tells; the next call goes on to the end
    };
    /// A place for a task that the calling thread waits for: this thread, where that can be.
    class guest {
    public:
        virtual ~guest();
        virtual executor& place() noexcept = 0;
        /// Runs works until `end`, and then what is still queued. After another outcome, which a thread of plait's own
        /// doesn't know, it may be called again.
        virtual outcome run() = 0;
        /// Why it was interrupted.
        virtual std::exception_ptr why() const noexcept;
        /// Ends `run`; on the place.
        virtual void end() noexcept = 0;
    };
    virtual std::unique_ptr<guest> come() = 0;

    /// Blocks the calling thread, which is none of the machine's, until `done` holds, as works make it. `mutex` guards
    /// it and whoever changes it notifies `changed`. A simulation runs the works, and terminates when they can't.
    virtual void wait(std::mutex& mutex, condition& changed, std::function<bool()> const& done) noexcept = 0;

    /// Ends all loops and the pool, after what is queued there.
    virtual void end() noexcept = 0;
};

} // namespace plait::detail
