#pragma once

#include <plait/actors/runtime/executor.hpp>

namespace plait {

/// A serial executor that serves devices when it has nothing else to do: a thread of its own (`thread_loop`), or part
/// of a simulation. Parks when there is nothing to do; never spins while idle.
class event_loop : public executor {
public:
    /// Something that needs the loop whenever no work is ready, such as a device.
    struct poller {
        /// Does one piece of what there is to do. False when there is nothing: the loop may park, and a later post to
        /// the loop has it asked again. Must not throw.
        virtual bool poll() = 0;

    protected:
        ~poller() = default;
    };
    /// On the loop, or before it runs.
    virtual void attach(poller& p) = 0;
    virtual void detach(poller& p) noexcept = 0;
};

} // namespace plait
