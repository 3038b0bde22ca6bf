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
    auto cancelled = [&](std::int64_t count) -> task<sample> {
        ended = 0;
        sample out;
        auto body = [&](scope& all) -> task<> {
            for (std::int64_t i = 0; i < count; ++i)
                all.start(wait(never, ended));
            co_await this_task::yield(); // they have started, and wait
            meter m;
            all.request_stop();
            co_await all.join();
            out = m.over(count);
        };
        co_await with_scope(body);
        check(ended, count, "cancel");
        co_return out;
    };
    auto measured = [&]() -> task<sample> {
        co_await cancelled(1); // the one error of all that are cancelled here is made
        co_return co_await cancelled(n);
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
