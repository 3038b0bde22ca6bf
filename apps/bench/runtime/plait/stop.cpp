#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/tasks/scope.hpp>

namespace plait::bench::with_plait {

namespace {

using values = channel<std::int64_t>;

task<> wait_for_result(values& never, std::int64_t& ended)
{
    auto const outcome = co_await as_result(never.receive());
    if (outcome.error() == errc::cancelled) ++ended;
}

task<> wait_and_throw(values& never, std::int64_t& ended)
{
    struct at_end {
        ~at_end() { ++count; }
        std::int64_t& count;
    } const counts{ended};
    co_await never.receive();
    ended = -1; // it must not come here
}

template<class Wait>
sample cancel(std::int64_t n, Wait wait)
{
    runtime home;
    values never(1);
    std::int64_t ended = 0;
    auto measured = [&]() -> task<sample> {
        sample out;
        auto body = [&](scope& all) -> task<> {
            for (std::int64_t i = 0; i < n; ++i)
                all.start(wait(never, ended));
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

} // namespace

sample cancel_results(std::int64_t n)
{
    return cancel(n, wait_for_result);
}

sample cancel_throwing(std::int64_t n)
{
    return cancel(n, wait_and_throw);
}

} // namespace plait::bench::with_plait
