#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

namespace plait::detail {

/// Who must be done before a task goes on that has started an operation: the initiation, the completion, and a stop on
/// its way to the operation. The last one resumes it.
template<class Atomics = machine_atomics>
class rendezvous {
public:
    /// A stop comes too. False when the initiation and the completion are over already.
    bool try_enter() noexcept
    {
        auto parties = parties_.load(std::memory_order_relaxed);
        while (parties != 0) {
            if (parties_.compare_exchange_weak(parties, parties + 1, std::memory_order_relaxed)) return true;
        }
        return false;
    }
    /// True for the last.
    bool leave() noexcept { return parties_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
    typename Atomics::template atomic<int> parties_{2};
};

/// When the asker of an actor may go on: when its message has ended, and, if a stop was passed on to the actor, when
/// that work has run as well, since both live in the asker's frame. On the actor's executor, but for `passed_on`.
template<class Atomics = machine_atomics>
class ask_rendezvous {
public:
    /// In the stop's callback, before the work is posted.
    void passed_on() noexcept { passed_on_ = true; }

    /// The message has ended and the callback was unlinked. True when the asker may go on.
    bool answered() noexcept
    {
        answered_ = true;
        return over();
    }
    /// The passed stop has arrived. True when the asker may go on; otherwise the message is still under way.
    bool stop_arrived() noexcept
    {
        arrived_ = true;
        return answered_;
    }
    bool over() const noexcept { return answered_ && (!passed_on_ || arrived_); }

private:
    template<class T>
    using plain = typename Atomics::template plain<T>;

    plain<bool> answered_{false};
    plain<bool> passed_on_{false}; ///< written by the stop's callback, read after that was unlinked
    plain<bool> arrived_{false};
};

} // namespace plait::detail
