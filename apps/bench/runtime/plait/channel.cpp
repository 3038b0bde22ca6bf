#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/apps/bench/runtime/apart.hpp>

#include <array>

namespace plait::bench::with_plait {

namespace {

constexpr std::int64_t peers = 4;
constexpr std::size_t capacity = 64;

task<> send(channel<std::int64_t>& to, std::int64_t from, std::int64_t n)
{
    for (auto i = from; i < n; i += peers)
        co_await to.send(i);
}

task<> receive(channel<std::int64_t>& from, std::int64_t n, std::int64_t& sum)
{
    for (std::int64_t i = 0; i < n; ++i) {
        auto const got = co_await from.receive();
        sum += *got;
    }
}

task<> send_all(channel<std::int64_t>& to, std::int64_t n)
{
    auto body = [&](scope& all) -> task<> {
        for (std::int64_t i = 0; i < peers; ++i)
            all.start(send(to, i, n));
        co_return;
    };
    co_await with_scope(body);
}

task<std::int64_t> receive_all(channel<std::int64_t>& from, std::int64_t n)
{
    std::array<std::int64_t, peers> sums{};
    auto body = [&](scope& all) -> task<> {
        for (auto& sum : sums)
            all.start(receive(from, n / peers, sum));
        co_return;
    };
    co_await with_scope(body);
    std::int64_t sum = 0;
    for (auto const one : sums)
        sum += one;
    co_return sum;
}

/// One side of the exchange, on a thread of its own.
class side : public actor {
public:
    side(channel<std::int64_t>& values, apart& where)
        : values_(values)
        , where_(where)
    {
    }
    task<> send(std::int64_t n)
    {
        where_.here(0);
        co_await send_all(values_, n);
    }
    task<std::int64_t> receive(std::int64_t n)
    {
        where_.here(1);
        co_return co_await receive_all(values_, n);
    }

private:
    channel<std::int64_t>& values_;
    apart& where_;
};

/// Sends n values twice with `both`, which gives their sum; the second time is measured.
template<class Both>
task<sample> measure(std::int64_t n, Both both)
{
    n = n / peers * peers;
    co_await both(n);
    meter m;
    auto const sum = co_await both(n);
    auto const out = m.over(n);
    check(sum, sum_below(n), "channel");
    co_return out;
}

} // namespace

sample many_to_many(std::int64_t n)
{
    runtime home;
    channel<std::int64_t> values(capacity);
    auto both = [&](std::int64_t count) -> task<std::int64_t> {
        auto [sum, sent] = co_await when_all(receive_all(values, count), send_all(values, count));
        co_return sum;
    };
    return home.run(measure(n, both));
}

sample many_to_many_across(std::int64_t n)
{
    runtime home;
    channel<std::int64_t> values(capacity);
    apart where;
    loop_options first{.name = "senders", .cpu = processor(0)};
    loop_options second{.name = "receivers", .cpu = processor(1)};
    auto senders = home.spawn_on<side>(home.new_loop(first), values, where);
    auto receivers = home.spawn_on<side>(home.new_loop(second), values, where);
    auto both = [&](std::int64_t count) -> task<std::int64_t> {
        auto [sum, sent] = co_await when_all(ask<&side::receive>(receivers, count), ask<&side::send>(senders, count));
        co_return sum;
    };
    auto const out = home.run(measure(n, both));
    where.check();
    return out;
}

} // namespace plait::bench::with_plait
