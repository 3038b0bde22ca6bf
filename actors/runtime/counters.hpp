#pragma once

#include <plait/actors/runtime/machine_atomics.hpp>

#include <cstddef>
#include <cstdint>

/// Words that threads share. Whoever takes the last step sees all that the others did before theirs.
namespace plait::detail {

/// The handles to something: strong ones keep it going, weak ones only its memory.
template<class Atomics = machine_atomics>
class handle_counts {
public:
    void add_strong() noexcept { strong_.fetch_add(1, std::memory_order_relaxed); }
    /// False when no strong one is left.
    bool try_add_strong() noexcept
    {
        auto count = strong_.load(std::memory_order_relaxed);
        while (count != 0) {
            if (strong_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
        }
        return false;
    }
    /// True for the last.
    bool drop_strong(std::uint32_t count = 1) noexcept
    {
        return strong_.fetch_sub(count, std::memory_order_acq_rel) == count;
    }
    void add_weak() noexcept { weak_.fetch_add(1, std::memory_order_relaxed); }
    /// True for the last.
    bool drop_weak() noexcept { return weak_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

private:
    typename Atomics::template atomic<std::uint32_t> strong_{1};
    typename Atomics::template atomic<std::uint32_t> weak_{1}; ///< one for all the strong ones together
};

/// How many are inside a gate, until it is closed and empty.
///
/// Bit 0: closed, never cleared. Above it: how many are inside, which doesn't grow once bit 0 is set. So the word
/// becomes `closed_bit` once, and one thread is told that it made it so.
template<class Atomics = machine_atomics>
class gate_count {
public:
    /// False when it is closed.
    bool try_enter() noexcept
    {
        auto word = word_.load(std::memory_order_relaxed);
        do {
            if (word & closed_bit) return false;
        } while (!word_.compare_exchange_weak(word, word + one_inside, std::memory_order_relaxed));
        return true;
    }
    /// True for the last to leave a closed one.
    bool leave() noexcept
    {
        return word_.fetch_sub(one_inside, std::memory_order_acq_rel) == (closed_bit | one_inside);
    }
    /// True when it was open and nobody is inside.
    bool close() noexcept { return word_.fetch_or(closed_bit, std::memory_order_acq_rel) == 0; }

    bool closed() const noexcept { return (word_.load(std::memory_order_acquire) & closed_bit) != 0; }
    std::size_t inside() const noexcept { return word_.load(std::memory_order_acquire) / one_inside; }

private:
    static constexpr std::size_t closed_bit = 1;
    static constexpr std::size_t one_inside = 2;

    typename Atomics::template atomic<std::size_t> word_{0};
};

/// The messages that were sent to a bounded mailbox. Those who send write it, alone: it also remembers up to which
/// number there was room when somebody looked last, so that what the receiver writes is fetched once for many messages.
/// Only numbers are compared: who finds room sees nothing of what the receiver has done.
template<class Atomics = machine_atomics>
class sent_count {
    using counter = typename Atomics::template atomic<std::uint64_t>;

public:
    std::uint64_t value() const noexcept { return sent_.load(std::memory_order_relaxed); }

    /// The number of one more message.
    std::uint64_t add() noexcept { return sent_.fetch_add(1, std::memory_order_relaxed); }
    /// The same, only if there is room for it.
    bool try_add(counter const& taken, std::uint64_t capacity, std::uint64_t& number) noexcept
    {
        number = value();
        do {
            if (!has_room(number, taken, capacity)) return false;
        } while (!sent_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
        return true;
    }

    /// Whether fewer than `capacity` messages before number `number` have not been taken.
    bool has_room(std::uint64_t number, counter const& taken, std::uint64_t capacity) noexcept
    {
        // What another sender has seen meanwhile may be overwritten by less, and then is looked up once more.
        if (number < room_below_.load(std::memory_order_relaxed)) return true;
        auto const below = taken.load(std::memory_order_relaxed) + capacity;
        if (number >= below) return false;
        room_below_.store(below, std::memory_order_relaxed);
        return true;
    }

private:
    counter sent_{0};
    counter room_below_{0};
};

/// Something that one thread at a time may do, and others not at all meanwhile.
template<class Atomics = machine_atomics>
class claim {
public:
    /// True for whoever may do it.
    bool take() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
    void give_back() noexcept { taken_.store(false, std::memory_order_release); }

private:
    typename Atomics::template atomic<bool> taken_{false};
};

/// A latch's count.
template<class Atomics = machine_atomics>
class countdown {
public:
    explicit countdown(std::size_t count) noexcept
        : left_(count)
    {
    }

    enum class outcome : std::uint8_t { counted, zero, below_zero };
    /// `zero` for whoever makes it so; `below_zero` when less than `n` is left, which changes nothing. `n` is not 0.
    outcome down(std::size_t n) noexcept
    {
        auto left = left_.load(std::memory_order_relaxed);
        do {
            if (n > left) return outcome::below_zero;
        } while (!left_.compare_exchange_weak(left, left - n, std::memory_order_acq_rel, std::memory_order_relaxed));
        return left == n ? outcome::zero : outcome::counted;
    }

private:
    typename Atomics::template atomic<std::size_t> left_;
};

} // namespace plait::detail
