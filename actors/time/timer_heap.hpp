#pragma once

#include <plait/actors/tasks/task.hpp>

#include <chrono>
#include <cstdint>

namespace plait {

/// All of plait's time is 64-bit nanoseconds, so that simulated time is exact.
using duration = std::chrono::duration<std::int64_t, std::nano>;
/// A point on a `clock`; its origin is the clock's own.
using time_point = std::chrono::time_point<clock, duration>;

namespace detail {

/// A sleeping coroutine: a node of its clock's queue, in the sleeper's frame.
struct timer : resumption {
    time_point due;
    timer* next = nullptr;
    timer* previous = nullptr;
    timer* child = nullptr; ///< in a heap; there `next` is the next sibling, and a first child's `previous` its parent
    void const* soon = nullptr; ///< set when it fires: the frame of one that fires a little later and may have gone
    std::uint64_t number = 0;   ///< in a heap: orders timers that are due together, first armed, first fired
    bool armed = false;
    bool cancelled = false;
    bool late = false; ///< was put off when it was due

    void const* frame() const noexcept { return frame_begin(); }
    /// Goes on, while the frame of a later one comes from memory. In a crowd they lie anywhere.
    static void go_on_and_prefetch(work& self) noexcept
    {
        constexpr int line = 64;
        constexpr int most_of_a_sleeper = 6 * line;
        if (auto const* later = static_cast<char const*>(static_cast<timer&>(self).soon)) {
            for (int at = 0; at < most_of_a_sleeper; at += line)
                __builtin_prefetch(later + at, 1);
        }
        go_on(self);
    }
};

/// A pairing heap of timers: nothing is allocated, arming takes constant time, removing O(log n) on average over many.
class timer_heap {
public:
    timer* top() const noexcept { return root_; }
    void push(timer& t) noexcept;
    void remove(timer& t) noexcept;

private:
    static timer* meld(timer* a, timer* b) noexcept;
    static timer* merge_children(timer* first) noexcept;

    timer* root_ = nullptr;
    std::uint64_t pushed_ = 0;
};

} // namespace detail

} // namespace plait
