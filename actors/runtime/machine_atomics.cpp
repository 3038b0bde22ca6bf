#include <plait/actors/runtime/machine_atomics.hpp>

#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace plait::detail {

#if defined(__linux__)

void machine_atomics::sleep_at_once(std::atomic<std::uint32_t> const& word, std::uint32_t seen) noexcept
{
    static_assert(sizeof word == sizeof(std::uint32_t), "a futex is a word of 32 bits");
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void machine_atomics::wake_sleeper(std::atomic<std::uint32_t>& word) noexcept
{
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

#else

void machine_atomics::sleep_at_once(std::atomic<std::uint32_t> const& word, std::uint32_t seen) noexcept
{
    word.wait(seen, std::memory_order_relaxed);
}

void machine_atomics::wake_sleeper(std::atomic<std::uint32_t>& word) noexcept
{
    word.notify_one();
}

#endif

void machine_atomics::yield() noexcept
{
    std::this_thread::yield();
}

void const* machine_atomics::this_thread() noexcept
{
    static constinit thread_local char mark = 0;
    return &mark;
}

} // namespace plait::detail
