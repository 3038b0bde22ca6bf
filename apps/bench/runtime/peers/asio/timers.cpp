#include <plait/apps/bench/runtime/peers/asio/asio.hpp>

#include <plait/apps/bench/runtime/peers/asio/rethrow.hpp>
#include <plait/apps/bench/runtime/timers.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <deque>
#include <optional>

namespace plait::bench::with_asio {

namespace {

using asio::awaitable;
using time = asio::steady_timer::clock_type;

/// Sleepers that count how they end.
struct sleepers {
    awaitable<void> sleep(asio::steady_timer& timer)
    {
        auto const [failure] = co_await timer.async_wait(asio::experimental::as_tuple(asio::use_awaitable));
        ++(failure ? cancelled : fired);
    }

    /// Starts one; when it waits, the other thing that was posted after it runs.
    void start(time::time_point due)
    {
        auto& timer = timers.emplace_back(context, due);
        asio::co_spawn(context, sleep(timer), rethrow);
    }

    asio::io_context context{1};
    std::deque<asio::steady_timer> timers;
    std::int64_t fired = 0;
    std::int64_t cancelled = 0;
};

} // namespace

sample arm_and_cancel(std::int64_t n)
{
    sleepers all;
    meter m;
    auto const now = time::now();
    for (std::int64_t i = 0; i < n; ++i)
        all.start(now + std::chrono::hours(1) + spread(i));
    asio::post(all.context, [&] {
        for (auto& timer : all.timers)
            timer.cancel();
    });
    all.context.run();
    auto const out = m.over(n);
    check(all.cancelled, n, "timers");
    return out;
}

sample arm_and_fire(std::int64_t n)
{
    auto attempt = [n](duration within) -> std::optional<sample> {
        sleepers all;
        sample out;
        bool in_time = false;
        auto const due = time::now() + within;
        meter arming;
        for (std::int64_t i = 0; i < n; ++i)
            all.start(due + spread(i));
        asio::post(all.context, [&] {
            out = arming.over(n);
            in_time = time::now() < due;
        });
        all.context.run();
        out.value += std::chrono::duration<double, std::nano>(time::now() - due).count() / static_cast<double>(n);
        check(all.fired, n, "timers");
        return in_time ? std::optional(out) : std::nullopt;
    };
    return armed_in_time(n, attempt);
}

} // namespace plait::bench::with_asio
