#include <plait/apps/bench/runtime/peers/bare/bare.hpp>

#include <plait/apps/bench/runtime/peers/bare/task.hpp>

#include <atomic>
#include <thread>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace plait::bench::bare {

namespace {

[[gnu::noinline]] bare_task<std::int64_t> child(std::int64_t i)
{
    co_return i;
}

bare_task<std::int64_t> await_children(std::int64_t n)
{
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += co_await child(i);
    co_return sum;
}

void pause() noexcept
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void spin_until(std::atomic<std::int64_t> const& word, std::int64_t wanted) noexcept
{
    while (word.load(std::memory_order_acquire) != wanted)
        pause();
}

void sleep_until_changed(std::atomic<std::uint32_t>& word, std::uint32_t seen) noexcept
{
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void wake_one(std::atomic<std::uint32_t>& word) noexcept
{
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// A word to sleep on, alone on its line.
struct alignas(64) flag {
    void set() noexcept
    {
        word.store(1, std::memory_order_release);
        wake_one(word);
    }
    void wait() noexcept
    {
        while (word.load(std::memory_order_acquire) == 0)
            sleep_until_changed(word, 0);
        word.store(0, std::memory_order_relaxed);
    }
    std::atomic<std::uint32_t> word{0};
};

} // namespace

sample await_child(std::int64_t n)
{
    await_children(warm_up(n)).run();
    meter m;
    auto const sum = await_children(n).run();
    auto const out = m.over(n);
    check(sum, sum_below(n), "await");
    return out;
}

sample line_round_trip(std::int64_t n)
{
    struct alignas(64) line {
        std::atomic<std::int64_t> value{0};
    };
    line there, back;
    auto const warm = warm_up(n);
    std::thread other([&] {
        for (std::int64_t i = 1; i <= warm + n; ++i) {
            spin_until(there.value, i);
            back.value.store(i, std::memory_order_release);
        }
    });
    auto trips = [&](std::int64_t from, std::int64_t to) {
        for (auto i = from; i <= to; ++i) {
            there.value.store(i, std::memory_order_release);
            spin_until(back.value, i);
        }
    };
    trips(1, warm);
    meter m;
    trips(warm + 1, warm + n);
    auto const out = m.over(n);
    other.join();
    return out;
}

sample futex_round_trip(std::int64_t n)
{
    flag there, back;
    std::int64_t seen = 0;
    auto const warm = warm_up(n);
    std::thread other([&] {
        for (std::int64_t i = 0; i < warm + n; ++i) {
            there.wait();
            ++seen;
            back.set();
        }
    });
    auto trips = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            there.set();
            back.wait();
        }
    };
    trips(warm);
    meter m;
    trips(n);
    auto const out = m.over(n);
    other.join();
    check(seen, warm + n, "futex");
    return out;
}

} // namespace plait::bench::bare
