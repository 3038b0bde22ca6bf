#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

#include <cstdint>

namespace plait::host {

/// How the workers of a compute_pool come to the shares of an operation, and worker 0 to its end.
///
/// One operation is published at a time: worker 0 writes it, stores 0 to `next_`, and adds 1 to `epoch_`, which wakes
/// the others. Whoever adds 1 to `next_` and finds less than there are shares has taken that share, runs it, and adds 1
/// to `done_`. Worker 0 waits until all are done before it publishes the next, so what a taken share reads stays; a
/// worker that comes late, from whatever epoch, takes what is left or nothing.
template<class Atomics = plait::detail::machine_atomics, int Looks = 1500>
class share_turns {
    using counter = typename Atomics::template atomic<std::uint32_t>;

public:
    /// Worker 0 has written the next operation.
    void publish() noexcept
    {
        done_.store(0, std::memory_order_relaxed);
        next_.store(0, std::memory_order_release);
    }
    /// There are other workers: wakes them.
    void call() noexcept
    {
        epoch_.fetch_add(1, std::memory_order_release);
        Atomics::wake_all(epoch_);
    }

    /// The share that the caller is to run; none when it is too large.
    std::uint32_t take() noexcept { return next_.fetch_add(1, std::memory_order_acquire); }
    void finish() noexcept
    {
        done_.fetch_add(1, std::memory_order_release);
        Atomics::wake_one(done_);
    }

    /// Worker 0: returns when `count` shares are done.
    void wait_for(std::uint32_t count) noexcept
    {
        for (auto done = done_.load(std::memory_order_acquire); done != count;)
            done = await_change(done_, done);
    }
    /// The others: returns the new epoch when it is not `seen`.
    std::uint32_t wait_for_call(std::uint32_t seen) noexcept { return await_change(epoch_, seen); }

    /// The next call sends the others away.
    void close() noexcept { closing_.store(true, std::memory_order_relaxed); }
    bool closing() const noexcept { return closing_.load(std::memory_order_relaxed); }

private:
    /// Returns when `word` no longer holds `seen`. Looks a while before it sleeps, with a pause of 20 to 40 ns between
    /// two looks: some tens of microseconds. That is longer than the gap between two operations of a step or two steps
    /// of a busy engine, and short against the time slice of whoever else wants the processor.
    static std::uint32_t await_change(counter const& word, std::uint32_t seen) noexcept
    {
        for (int i = 0;; ++i) {
            auto now = word.load(std::memory_order_acquire);
            if (now != seen) return now;
            if (i < Looks) {
                plait::detail::relax();
            } else {
                Atomics::sleep_while(word, seen, std::memory_order_relaxed);
            }
        }
    }

    alignas(64) counter epoch_{0};
    alignas(64) counter next_{0};
    alignas(64) counter done_{0};
    typename Atomics::template atomic<bool> closing_{false};
};

/// Workers that have left. Each holds it too: a worker's last act is to wake whoever waits, who may go then.
template<class Atomics = plait::detail::machine_atomics>
class departures {
public:
    void leave() noexcept
    {
        gone_.fetch_add(1, std::memory_order_release);
        Atomics::wake_one(gone_);
    }
    void wait_for(std::uint32_t count) noexcept
    {
        for (;;) {
            auto gone = gone_.load(std::memory_order_acquire);
            if (gone == count) return;
            Atomics::sleep_while(gone_, gone, std::memory_order_relaxed);
        }
    }

private:
    typename Atomics::template atomic<std::uint32_t> gone_{0};
};

} // namespace plait::host
