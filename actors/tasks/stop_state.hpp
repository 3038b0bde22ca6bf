#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

#include <cassert>

namespace plait::detail {

/// What a stop_source is: whether a stop was requested, and the callbacks that wait for it. Everything from any thread.
template<class Atomics = machine_atomics>
class stop_state {
    template<class T>
    using atomic = typename Atomics::template atomic<T>;
    template<class T>
    using plain = typename Atomics::template plain<T>;

public:
    /// A callback, in the list from `link` until it is called or unlinked.
    class callback {
    public:
        explicit callback(void (*call)(callback&) noexcept) noexcept
            : call_(call)
        {
        }
        callback(callback const&) = delete;
        callback& operator=(callback const&) = delete;

        /// Links this into `state`, or calls it now if the stop was requested already. Null: never called.
        void link(stop_state const* state) noexcept
        {
            if (!state) return;
            state_ = state;
            if (!state->add(*this)) {
                state_ = nullptr;
                call_(*this);
            }
        }
        /// After this the callback doesn't run and isn't running on another thread.
        void unlink() noexcept
        {
            if (state_) state_->remove(*this);
        }

    private:
        friend stop_state;

        void (*call_)(callback&) noexcept;
        stop_state const* state_ = nullptr;
        plain<callback*> next_{nullptr};
        plain<plain<callback*>*> previous_{nullptr}; ///< null when not in the list
        plain<bool*> removed_{nullptr};              ///< set while running: told when the callback destroys itself
        atomic<bool> done_{false};                   ///< the callback has returned
    };

    stop_state() noexcept = default;
    stop_state(stop_state const&) = delete;
    stop_state& operator=(stop_state const&) = delete;
    ~stop_state() { assert(!callbacks_ && "a stop_source must outlive its callbacks"); }

    bool stop_requested() const noexcept { return (word_.load(std::memory_order_acquire) & requested) != 0; }

    /// Runs the callbacks on this thread. False if a stop was requested before.
    bool request_stop() noexcept
    {
        if (stop_requested()) return false;
        if (lock() & requested) {
            unlock(requested);
            return false;
        }
        notifier_ = Atomics::this_thread();
        while (callback* next = callbacks_) {
            callbacks_ = next->next_;
            if (callbacks_) callbacks_->previous_ = &callbacks_;
            next->previous_ = nullptr;
            bool removed = false;
            next->removed_ = &removed;
            unlock(requested);

            next->call_(*next);

            if (!removed) {
                next->removed_ = nullptr;
                next->done_.store(true, std::memory_order_release);
            }
            lock();
        }
        unlock(requested);
        return true;
    }

private:
    static constexpr unsigned requested = 1;
    static constexpr unsigned locked = 2;

    unsigned lock() const noexcept
    {
        for (;;) {
            auto word = word_.load(std::memory_order_relaxed);
            if (!(word & locked) && word_.compare_exchange_weak(word, word | locked, std::memory_order_acquire,
                                                                std::memory_order_relaxed)) {
                return word;
            }
            // The holder is between two instructions; if it was preempted, let it run.
            if (word & locked) Atomics::yield();
        }
    }
    void unlock(unsigned word) const noexcept { word_.store(word, std::memory_order_release); }

    /// False when the stop was requested already.
    bool add(callback& added) const noexcept
    {
        if (stop_requested()) return false;
        auto word = lock();
        if (!(word & requested)) {
            added.next_ = callbacks_;
            added.previous_ = &callbacks_;
            if (callbacks_) callbacks_->previous_ = &added.next_;
            callbacks_ = &added;
        }
        unlock(word);
        return !(word & requested);
    }

    void remove(callback& removed) const noexcept
    {
        auto word = lock();
        if (plain<callback*>* previous = removed.previous_) {
            *previous = removed.next_;
            if (removed.next_) removed.next_->previous_ = previous;
            unlock(word);
            return;
        }
        bool own = notifier_ == Atomics::this_thread();
        unlock(word);
        if (own) {
            // Either it is this very callback that destroys itself, or it has returned.
            if (removed.removed_) *removed.removed_ = true;
        } else {
            while (!removed.done_.load(std::memory_order_acquire)) {
                Atomics::yield();
            }
        }
    }

    /// Bit 0: a stop was requested (never cleared). Bit 1: the list below is being changed; held for a few
    /// instructions, never while a callback runs.
    mutable atomic<unsigned> word_{0};
    mutable plain<callback*> callbacks_{nullptr};
    mutable plain<void const*> notifier_{nullptr}; ///< the thread inside request_stop
};

extern template class stop_state<>;

} // namespace plait::detail
