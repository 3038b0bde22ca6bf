#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/event.hpp>
#include <plait/actors/runtime.hpp>
#include <plait/actors/scope.hpp>

namespace plait::bench::with_plait {

sample cancel_waiting(std::int64_t n)
{
    runtime home;
    event never;
    std::int64_t ended = 0;
    auto waits = [&]() -> task<> {
        auto outcome = co_await as_result(never.wait());
        if (outcome.error() == errc::cancelled) ++ended;
    };
    auto measured = [&]() -> task<sample> {
        sample out;
        auto body = [&](scope& all) -> task<> {
            for (std::int64_t i = 0; i < n; ++i)
                all.start(waits());
            co_await this_task::yield(); // they have started, and wait
            meter m;
            all.request_stop();
            co_await all.join();
            out = m.over(n);
        };
        co_await with_scope(body);
        check(ended, n, "cancel");
        co_return out;
    };
    return home.run(measured());
}

} // namespace plait::bench::with_plait
