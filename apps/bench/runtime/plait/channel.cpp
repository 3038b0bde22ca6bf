#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/channel.hpp>
#include <plait/actors/runtime.hpp>
#include <plait/actors/scope.hpp>
#include <plait/actors/when_all.hpp>

#include <array>

namespace plait::bench::with_plait {

namespace {

constexpr std::int64_t peers = 4;
constexpr std::size_t capacity = 64;

task<> send(channel<std::int64_t>& to, std::int64_t from, std::int64_t n, std::int64_t step)
{
    for (auto i = from; i < n; i += step)
        co_await to.send(i);
}

task<> receive(channel<std::int64_t>& from, std::int64_t n, std::int64_t& sum)
{
    for (std::int64_t i = 0; i < n; ++i) {
        auto const got = co_await from.receive();
        sum += *got;
    }
}

/// Some of the senders and receivers, on one loop.
task<std::int64_t> through(channel<std::int64_t>& values, std::int64_t n, std::int64_t first, std::int64_t last)
{
    std::array<std::int64_t, peers> sums{};
    auto body = [&](scope& all) -> task<> {
        for (auto i = first; i < last; ++i) {
            all.start(send(values, i, n, peers));
            all.start(receive(values, n / peers, sums[static_cast<std::size_t>(i)]));
        }
        co_return;
    };
    co_await with_scope(body);
    std::int64_t sum = 0;
    for (auto const one : sums)
        sum += one;
    co_return sum;
}

class exchange : public actor {
public:
    task<std::int64_t> through(channel<std::int64_t>* values, std::int64_t n, std::int64_t first, std::int64_t last)
    {
        co_return co_await with_plait::through(*values, n, first, last);
    }
};

} // namespace

sample many_to_many(std::int64_t n)
{
    n = n / peers * peers;
    runtime home;
    channel<std::int64_t> values(capacity);
    auto both = [&]() -> task<sample> {
        co_await through(values, n / 8 * peers, 0, peers);
        meter m;
        auto const sum = co_await through(values, n, 0, peers);
        auto const out = m.over(n);
        check(sum, sum_below(n), "channel");
        co_return out;
    };
    return home.run(both());
}

sample many_to_many_across(std::int64_t n)
{
    n = n / peers * peers;
    runtime home;
    channel<std::int64_t> values(capacity);
    auto one = home.spawn_on<exchange>(home.new_loop("one"));
    auto two = home.spawn_on<exchange>(home.new_loop("two"));
    auto both = [&](std::int64_t count) -> task<std::int64_t> {
        auto half = peers / 2;
        auto [a, b] = co_await when_all(ask<&exchange::through>(one, &values, count, 0, half),
                                        ask<&exchange::through>(two, &values, count, half, peers));
        co_return a + b;
    };
    auto measured = [&]() -> task<sample> {
        co_await both(n / 8 * peers);
        meter m;
        auto const sum = co_await both(n);
        auto const out = m.over(n);
        check(sum, sum_below(n), "channel");
        co_return out;
    };
    return home.run(measured());
}

} // namespace plait::bench::with_plait
