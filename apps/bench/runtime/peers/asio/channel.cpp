#include <plait/apps/bench/runtime/peers/asio/asio.hpp>

#include <plait/apps/bench/runtime/peers/asio/rethrow.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>
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

/// Starts all of them; the context must run after it.
template<class Channel>
void start(asio::io_context& context, Channel& values, std::int64_t n, std::atomic<std::int64_t>& sum)
{
    for (std::int64_t i = 0; i < peers; ++i) {
        asio::co_spawn(context, send(values, i, n), rethrow);
        asio::co_spawn(context, receive(values, n / peers, sum), rethrow);
    }
}

template<class Channel>
sample exchange(std::int64_t n, int threads)
{
    n = n / peers * peers;
    asio::io_context context(threads);
    Channel values(context, capacity);
    auto both = [&](std::int64_t count) {
        std::atomic<std::int64_t> sum{0};
        context.restart();
        start(context, values, count, sum);
        std::thread other;
        if (threads > 1) other = std::thread([&] { context.run(); });
        context.run();
        if (other.joinable()) other.join();
        return sum.load();
    };
    both(n / 8 * peers);
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
    return exchange<asio::experimental::channel<signature>>(n, 1);
}

sample many_to_many_across(std::int64_t n)
{
    return exchange<asio::experimental::concurrent_channel<signature>>(n, 2);
}

} // namespace plait::bench::with_asio
