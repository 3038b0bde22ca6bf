#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

#include <cstdint>

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

/// When who waits for an actor may go on, the asker for an answer or the sender for room: when that is there, and, if a
/// stop was passed on to the actor, when that work has run as well, since both live in the asker's frame. The stop's
/// callback is on any thread, the rest on the actor's executor. The asker unlinks the callback when it goes on: the
/// actor would have to fetch the stop's cache line for that.
template<class Atomics = machine_atomics>
class ask_rendezvous {
public:
    /// In the stop's callback. True when the stop is to be passed on; otherwise the message has ended.
    bool pass_on() noexcept
    {
        auto seen = under_way;
        return state_.compare_exchange_strong(seen, stop_follows, std::memory_order_relaxed, std::memory_order_relaxed);
    }

    /// The message has ended. True when the asker may go on.
    bool answered() noexcept
    {
        return state_.exchange(message_ended, std::memory_order_relaxed) != stop_follows || arrived_;
    }
    /// The passed stop has arrived. True when the asker may go on; otherwise the message is still under way.
    bool stop_arrived() noexcept
    {
        arrived_ = true;
        return over();
    }
    /// Whether it was answered.
    bool over() const noexcept { return state_.load(std::memory_order_relaxed) == message_ended; }

private:
    static constexpr std::uint8_t under_way = 0;
    static constexpr std::uint8_t stop_follows = 1;
    static constexpr std::uint8_t message_ended = 2;

    typename Atomics::template atomic<std::uint8_t> state_{under_way};
    typename Atomics::template plain<bool> arrived_{false};
};

} // namespace plait::detail
