#pragma once

#include <atomic>
#include <cstdint>

namespace plait::detail {

/// A pause between two looks at what is about to change.
inline void relax() noexcept
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Fetches the cache line at `near`, or so many bytes away from it, to be written, without waiting for it. A load would
/// fetch it to be read, and the write would then have to ask the others once more to give it up. (What a compiler makes
/// of a prefetch for writing is one for reading, on the oldest processors that it may assume.)
inline void prefetch_to_write(void const* near, std::intptr_t away = 0) noexcept
{
    auto const* const address = static_cast<char const*>(near) + away;
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/// What the protocols between threads are made of: the machine's atomics. Each protocol is a template over them, so
/// that the model checker runs the code that ships (tests/models/).
struct machine_atomics {
    template<class T>
    using atomic = std::atomic<T>;

    /// A variable that several threads use in turn: the atomics beside it put its accesses in order.
    template<class T>
    using plain = T;

    /// Sleeps until `word` is no longer `seen`; the C++ library looks a few times before it does.
    static void sleep_while(std::atomic<std::uint32_t> const& word, std::uint32_t seen,
                            std::memory_order order) noexcept
    {
        word.wait(seen, order);
    }
    static void wake_one(std::atomic<std::uint32_t>& word) noexcept { word.notify_one(); }
    /// The same for a sleeper that has looked long enough and a waker that knows of it: one system call each, where
    /// there is one. The library's wait gives its processor away a few times first, which on a busy machine takes
    /// longer than the sleep. Sleeps may end early.
    static void sleep_at_once(std::atomic<std::uint32_t> const& word, std::uint32_t seen) noexcept;
    static void wake_sleeper(std::atomic<std::uint32_t>& word) noexcept;

    static void wake_all(std::atomic<std::uint32_t>& word) noexcept { word.notify_all(); }

    /// About a microsecond: less than falling asleep and being woken takes.
    static constexpr unsigned looks_before_sleep = 64;
    static void pause() noexcept { relax(); }

    /// Lets the thread run whose next step this one waits for.
    static void yield() noexcept;

    /// An address that is the calling thread's own.
    static void const* this_thread() noexcept;
};

} // namespace plait::detail
