#include <plait/apps/bench/runtime/peers/bare/bare.hpp>

#include <plait/apps/bench/runtime/peers/bare/task.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

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

/// The next value after `seen`.
std::int64_t spin_while(std::atomic<std::int64_t> const& word, std::int64_t seen) noexcept
{
    for (;;) {
        auto const now = word.load(std::memory_order_acquire);
        if (now != seen) return now;
        pause();
    }
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
    std::int64_t sum = 0;
    laps times(n);
    for (; times.left(); times.lap())
        sum += await_children(times.part()).run();
    check(sum, times.sum(), "await");
    return times.over();
}

sample line_round_trip(std::int64_t n)
{
    struct alignas(64) line {
        std::atomic<std::int64_t> value{0};
    };
    line there, back;
    on_processor first(processor(0));
    std::thread other([&] {
        on_processor second(processor(1));
        for (std::int64_t seen = 0;;) {
            seen = spin_while(there.value, seen);
            if (seen < 0) return;
            back.value.store(seen, std::memory_order_release);
        }
    });
    std::int64_t last = 0;
    auto trips = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            there.value.store(last + 1, std::memory_order_release);
            last = spin_while(back.value, last);
        }
    };
    trips(warm_up(n));
    laps times(n);
    for (; times.left(); times.lap())
        trips(times.part());
    auto out = times.over();
    there.value.store(-1, std::memory_order_release);
    other.join();
    return out;
}

sample futex_round_trip(std::int64_t n)
{
    flag there, back;
    std::int64_t seen = 0;
    std::atomic<bool> over{false};
    on_processor first(processor(0));
    std::thread other([&] {
        on_processor second(processor(1));
        for (there.wait(); !over; there.wait()) {
            ++seen;
            back.set();
        }
    });
    std::int64_t sent = 0;
    auto trips = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            ++sent;
            there.set();
            back.wait();
        }
    };
    trips(warm_up(n));
    laps times(n);
    for (; times.left(); times.lap())
        trips(times.part());
    auto out = times.over();
    over = true;
    there.set();
    other.join();
    check(seen, sent, "futex");
    return out;
}

} // namespace plait::bench::bare
