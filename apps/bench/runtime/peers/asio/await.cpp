#include <plait/apps/bench/runtime/peers/asio/asio.hpp>

#include <plait/apps/bench/runtime/peers/asio/rethrow.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/version.hpp>

#include <thread>

namespace plait::bench::with_asio {

namespace {

using asio::awaitable;
using asio::use_awaitable;

[[gnu::noinline]] awaitable<std::int64_t> child(std::int64_t i)
{
    co_return i;
}

awaitable<std::int64_t> await_children(std::int64_t n)
{
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += co_await child(i);
    co_return sum;
}

template<class Executor>
awaitable<std::int64_t> ask(Executor other, std::int64_t n)
{
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += co_await asio::co_spawn(other, child(i), use_awaitable);
    co_return sum;
}

template<class Executor>
awaitable<void> measure_ask(Executor other, std::int64_t n, sample& out)
{
    co_await ask(other, warm_up(n));
    std::int64_t sum = 0;
    laps times(n);
    for (; times.left(); times.lap())
        sum += co_await ask(other, times.part());
    out = times.over();
    check(sum, times.sum(), "ask");
}

} // namespace

std::string version()
{
    return std::to_string(ASIO_VERSION / 100'000) + "." + std::to_string(ASIO_VERSION / 100 % 1000) + "." +
           std::to_string(ASIO_VERSION % 100);
}

sample await_child(std::int64_t n)
{
    asio::io_context context(1);
    sample out;
    auto measured = [&]() -> awaitable<void> {
        co_await await_children(warm_up(n));
        std::int64_t sum = 0;
        laps times(n);
        for (; times.left(); times.lap())
            sum += co_await await_children(times.part());
        out = times.over();
        check(sum, times.sum(), "await");
    };
    asio::co_spawn(context, measured(), rethrow);
    context.run();
    return out;
}

sample ask_beside(std::int64_t n)
{
    asio::io_context context(1);
    auto one = asio::make_strand(context);
    auto two = asio::make_strand(context);
    sample out;
    asio::co_spawn(one, measure_ask(two, n, out), rethrow);
    context.run();
    return out;
}

sample ask_asleep(std::int64_t n)
{
    asio::io_context here(1), there(1);
    auto stays = asio::make_work_guard(there);
    std::thread other([&] {
        on_processor second(processor(1));
        there.run();
    });
    on_processor first(processor(0));
    sample out;
    asio::co_spawn(here, measure_ask(there.get_executor(), n, out), rethrow);
    here.run();
    stays.reset();
    other.join();
    return out;
}

} // namespace plait::bench::with_asio
