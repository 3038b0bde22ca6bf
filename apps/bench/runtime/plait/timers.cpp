#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/apps/bench/process.hpp>
#include <plait/apps/bench/runtime/timers.hpp>

#include <optional>

namespace plait::bench::with_plait {

namespace {

/// Sleepers that count how they end.
struct sleepers {
    task<> sleep(time_point due)
    {
        auto outcome = co_await as_result(time.sleep_until(due));
        ++(outcome ? fired : cancelled);
    }

    clock& time;
    std::int64_t fired = 0;
    std::int64_t cancelled = 0;
};

} // namespace

sample arm_and_cancel(std::int64_t n)
{
    runtime home;
    sleepers all{home.clock()};
    sample out;
    auto body = [&](scope& s) -> task<> {
        meter m;
        auto const now = home.clock().now();
        for (std::int64_t i = 0; i < n; ++i)
            s.start(all.sleep(now + std::chrono::hours(1) + spread(i)));
        co_await this_task::yield();
        s.request_stop();
        co_await s.join();
        out = m.over(n);
    };
    home.run(with_scope(body));
    check(all.cancelled, n, "timers");
    return out;
}

sample arm_and_fire(std::int64_t n)
{
    auto attempt = [n](duration within) -> std::optional<sample> {
        runtime home;
        sleepers all{home.clock()};
        sample out;
        bool in_time = false;
        auto body = [&](scope& s) -> task<> {
            auto const due = home.clock().now() + within;
            meter arming;
            for (std::int64_t i = 0; i < n; ++i)
                s.start(all.sleep(due + spread(i)));
            co_await this_task::yield();
            out = arming.over(n);
            in_time = home.clock().now() < due;
            co_await s.join();
            out.value += static_cast<double>((home.clock().now() - due).count()) / static_cast<double>(n);
        };
        home.run(with_scope(body));
        check(all.fired, n, "timers");
        return in_time ? std::optional(out) : std::nullopt;
    };
    return armed_in_time(n, attempt);
}

sample wait_with_timers(std::int64_t n)
{
    runtime home;
    sleepers all{home.clock()};
    sample out;
    auto body = [&](scope& s) -> task<> {
        auto const now = home.clock().now();
        for (std::int64_t i = 0; i < n; ++i)
            s.start(all.sleep(now + std::chrono::hours(1) + spread(i)));
        co_await home.clock().sleep_for(std::chrono::milliseconds(10));
        auto const before = processor_time();
        co_await home.clock().sleep_for(std::chrono::seconds(2));
        out.value = static_cast<double>((processor_time() - before).count()) / 1e6;
        s.request_stop();
    };
    home.run(with_scope(body));
    check(all.cancelled, n, "timers");
    return out;
}

} // namespace plait::bench::with_plait
