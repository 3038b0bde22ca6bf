#pragma once

#include <plait/actors/runtime/executor.hpp>
#include <plait/actors/runtime/machine_atomics.hpp>

namespace plait::detail {

/// The queue of a serial executor: any thread pushes, one consumer takes everything at once.
///
/// One word is both the newest element and the state of the consumer:
///   - `idle()`     the consumer sleeps; whoever replaces this value must wake it
///   - null         the consumer is awake, being woken, or looked after by its executor, and nothing is queued
///   - otherwise    the newest work; `next_work` leads to the older ones
/// Pushes are linearised by the one compare-exchange, so delivery is causal: what was pushed before is taken before,
/// whoever pushed it. There is no ABA, since elements leave only by exchange of the whole chain.
template<class Work = work, class Atomics = machine_atomics>
class basic_mailbox {
public:
    basic_mailbox() noexcept
        : newest_(idle())
    {
    }
    basic_mailbox(basic_mailbox const&) = delete;
    basic_mailbox& operator=(basic_mailbox const&) = delete;

    /// Queues `w`. True when the consumer was idle: the caller must wake it, and until it does nobody else touches
    /// the consumer. When false, the consumer may already be gone on return.
    bool push(Work& w) noexcept { return push_chain(w, w); }

    /// The same for a chain of works, oldest first: nothing comes between them.
    bool push_all(Work& oldest) noexcept { return push_chain(*reversed(&oldest), oldest); }

    /// All that is queued, oldest first, linked by `next_work`; null when nothing is. Consumer only, when not idle.
    Work* take_all() noexcept
    {
        auto* w = newest_.load(std::memory_order_relaxed);
        if (!w) return nullptr;
        // Comes while the exchange waits for the cache line of the word: a work is part of something larger.
        for (int line = -5; line < 6; ++line)
            prefetch_to_write(w, 64 * line);
        return reversed(newest_.exchange(nullptr, std::memory_order_acquire));
    }

    /// Whether nothing is queued, as far as one look tells. Consumer only, when not idle.
    bool empty() const noexcept { return newest_.load(std::memory_order_relaxed) == nullptr; }

    /// Goes idle unless something is queued. After true the consumer touches nothing: another thread may have woken it
    /// already. Consumer only.
    bool try_idle() noexcept
    {
        Work* expected = nullptr;
        return newest_.compare_exchange_strong(expected, idle(), std::memory_order_release, std::memory_order_relaxed);
    }

    /// Whether the consumer sleeps and nothing is queued. What was true may be false at once.
    bool is_idle() const noexcept { return newest_.load(std::memory_order_relaxed) == idle(); }

    /// Makes the caller the consumer if the consumer is idle.
    bool try_wake() noexcept
    {
        auto* expected = idle();
        return is_idle() &&
               newest_.compare_exchange_strong(expected, nullptr, std::memory_order_acquire, std::memory_order_relaxed);
    }

private:
    bool push_chain(Work& newest, Work& oldest) noexcept
    {
        prefetch_to_write(this);
        auto* seen = newest_.load(std::memory_order_relaxed);
        do {
            oldest.next_work = seen == idle() ? nullptr : seen;
        } while (!newest_.compare_exchange_weak(seen, &newest, std::memory_order_acq_rel, std::memory_order_relaxed));
        return seen == idle();
    }

    static Work* reversed(Work* w) noexcept
    {
        Work* behind = nullptr;
        while (w) {
            Work* next = w->next_work;
            w->next_work = behind;
            behind = w;
            w = next;
        }
        return behind;
    }

    /// A value that no work has: the address of this mailbox.
    Work* idle() const noexcept { return reinterpret_cast<Work*>(const_cast<basic_mailbox*>(this)); }

    typename Atomics::template atomic<Work*> newest_;
};

} // namespace plait::detail
