#include <plait/apps/bench/runtime/peers/asio/asio.hpp>

#include <plait/apps/bench/runtime/apart.hpp>
#include <plait/apps/bench/runtime/peers/asio/rethrow.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>
#include <exception>
#include <latch>
#include <thread>

namespace plait::bench::with_asio {

namespace {

using asio::awaitable;
using asio::use_awaitable;

constexpr std::int64_t peers = 4;
constexpr std::size_t capacity = 64;

template<class Channel>
awaitable<void> send(Channel& to, std::int64_t from, std::int64_t n)
{
    for (auto i = from; i < n; i += peers)
        co_await to.async_send(asio::error_code(), i, use_awaitable);
}

template<class Channel>
awaitable<void> receive(Channel& from, std::int64_t n, std::atomic<std::int64_t>& sum)
{
    std::int64_t own = 0;
    for (std::int64_t i = 0; i < n; ++i)
        own += co_await from.async_receive(use_awaitable);
    sum += own;
}

/// Waits until all of them have ended, wherever they run.
struct ends {
    auto note()
    {
        return [this](std::exception_ptr failure) {
            left.count_down();
            rethrow(failure);
        };
    }
    std::latch left{2 * peers};
};

/// Sends and receives n values, each side on its context.
template<class Channel>
void start(asio::io_context& senders, asio::io_context& receivers, Channel& values, std::int64_t n,
           std::atomic<std::int64_t>& sum, ends& all)
{
    for (std::int64_t i = 0; i < peers; ++i) {
        asio::co_spawn(senders, send(values, i, n), all.note());
        asio::co_spawn(receivers, receive(values, n / peers, sum), all.note());
    }
}

/// Sends n values twice with `both`, which gives their sum; the second time is measured.
template<class Both>
sample measure(std::int64_t n, Both both)
{
    n = n / peers * peers;
    both(n);
    meter m;
    auto const sum = both(n);
    auto const out = m.over(n);
    check(sum, sum_below(n), "channel");
    return out;
}

using signature = void(asio::error_code, std::int64_t);

} // namespace

sample many_to_many(std::int64_t n)
{
    asio::io_context context(1);
    asio::experimental::channel<signature> values(context, capacity);
    auto both = [&](std::int64_t count) {
        std::atomic<std::int64_t> sum{0};
        ends all;
        context.restart();
        start(context, context, values, count, sum, all);
        context.run();
        return sum.load();
    };
    return measure(n, both);
}

sample many_to_many_across(std::int64_t n)
{
    asio::io_context senders(1), receivers(1);
    asio::experimental::concurrent_channel<signature> values(senders, capacity);
    apart where;
    auto stays = asio::make_work_guard(receivers);
    std::thread other([&] {
        on_processor second(processor(1));
        where.here(1);
        receivers.run();
    });
    on_processor first(processor(0));
    where.here(0);
    auto both = [&](std::int64_t count) {
        std::atomic<std::int64_t> sum{0};
        ends all;
        senders.restart();
        start(senders, receivers, values, count, sum, all);
        senders.run();
        all.left.wait();
        return sum.load();
    };
    auto const out = measure(n, both);
    stays.reset();
    other.join();
    where.check();
    return out;
}

} // namespace plait::bench::with_asio
