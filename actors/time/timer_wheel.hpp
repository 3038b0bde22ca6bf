#pragma once

#include <plait/actors/time/timer_heap.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace plait::detail {

/// The timers of a clock: a hierarchical wheel whose keys are whole nanoseconds, so that it is exact. Nothing is
/// allocated; arming and cancelling take constant time.
///
/// A timer's level is that of the highest digit, in base 256, in which its time differs from the wheel's, and its slot
/// there is that digit. So the slots of level 0 hold one time each, every slot of a level is earlier than the slots
/// after it and than all higher levels, and timers due together are in one slot, in the order in which they were armed.
/// When the wheel's time enters a slot, its timers move to lower levels: each does so seven times at most in its life.
/// Source: Varghese, Lauck, "Hashed and hierarchical timing wheels", 1987; the levels by differing digits are those of
/// a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", 1990).
class timer_wheel {
public:
    timer_wheel() = default;
    timer_wheel(timer_wheel const&) = delete;
    timer_wheel& operator=(timer_wheel const&) = delete;

    bool empty() const noexcept { return levels_ == 0 && !early_.top(); }

    void arm(timer& t) noexcept;
    /// Takes an armed timer out.
    void cancel(timer& t) noexcept;

    /// Moves the wheel's time on to `now`, and what is due to the end of `due`, by time and then by arming. When there
    /// are more than `most` it moves those, and its time up to them.
    void advance(time_point now, work_list& due, std::size_t most = static_cast<std::size_t>(-1)) noexcept;

    /// A time before which no timer is due: that of the first timer, or of one that was cancelled. Constant time. None
    /// when there are no timers.
    std::optional<time_point> no_earlier_than() const noexcept;

    /// Exactly when the first timer is due. Constant time, but for this: a slot whose first timer was cancelled and
    /// that holds many others is entered ahead of time, once. Timers that are then armed before it go into a heap, so
    /// that cancelling one of them costs O(log n).
    std::optional<time_point> next() noexcept;

private:
    static constexpr unsigned digit_bits = 8; // memory is what it costs: fewer moves, each of which misses the cache
    static constexpr unsigned slots = 1U << digit_bits;
    static constexpr unsigned levels = 64 / digit_bits;

    struct place {
        unsigned level;
        unsigned digit;
    };
    enum class end : std::uint8_t { front, back };
    struct slot {
        timer* first = nullptr;         ///< of a ring
        std::uint64_t earliest = 0;     ///< no timer here is before it
        std::array<timer*, 4> before{}; ///< the last that were put in, which may have gone
        std::uint32_t inserted = 0;
        end filled = end::back; ///< where most were put in
    };
    class slot_set {
    public:
        void add(unsigned digit) noexcept { words_[digit / 64] |= std::uint64_t{1} << digit % 64; }
        void remove(unsigned digit) noexcept { words_[digit / 64] &= ~(std::uint64_t{1} << digit % 64); }
        bool has(unsigned digit) const noexcept { return (words_[digit / 64] >> digit % 64) % 2 != 0; }
        bool empty() const noexcept;
        unsigned first() const noexcept;

    private:
        std::array<std::uint64_t, slots / 64> words_{};
    };
    struct level {
        std::array<slot, slots> at;
        slot_set used;  ///< slots with timers
        slot_set stale; ///< slots that a timer due at `earliest` has left
    };

    place place_of(std::uint64_t key) const noexcept;
    place first_place() const noexcept;
    void insert(timer& t, std::uint64_t key, end where) noexcept;
    void enter(place p) noexcept;
    bool look_up_earliest(place p) noexcept;
    /// All timers of a slot, as a ring; it is empty then.
    timer* take_all(place p) noexcept;

    std::uint64_t base_ = 0; ///< the wheel's time: no timer in it is earlier
    unsigned levels_ = 0;    ///< bit l: level l has timers
    std::array<level, levels> level_;
    timer_heap early_; ///< timers armed before `base_`, all of them due before those in the wheel
};

} // namespace plait::detail
