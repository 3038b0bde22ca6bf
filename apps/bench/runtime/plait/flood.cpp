#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/apps/bench/runtime/flood.hpp>

#include <array>
#include <atomic>
#include <vector>

namespace plait::bench::with_plait {

namespace {

constexpr std::int64_t bound = 256; // of every mailbox

/// What a sender has sent, alone on its line: the receiver looks at it.
struct alignas(64) sent_count {
    std::atomic<std::int64_t> value{0};
};
using sent_counts = std::array<sent_count, senders>;

class receiver : public actor {
public:
    explicit receiver(sent_counts const& sent)
        : sent_(sent)
    {
    }

    void take(std::int64_t from, std::int64_t number)
    {
        order_.see(from, number);
        if (order_.taken() % 64 == 0) look_at_bound();
    }
    std::int64_t taken() const { return order_.taken(); }

private:
    /// A sender that goes on had room: what all of them have sent is at most a mailbox ahead of what was taken.
    void look_at_bound()
    {
        std::int64_t sent = 0;
        for (auto const& one : sent_)
            sent += one.value.load(std::memory_order_relaxed);
        if (sent - order_.taken() > bound) throw std::logic_error("flood: the mailbox has passed its bound");
    }

    sent_counts const& sent_;
    order_check order_;
};

class sender : public actor {
public:
    sender(ref<receiver> to, std::int64_t number, sent_count& sent)
        : to_(std::move(to))
        , number_(number)
        , sent_(sent)
    {
    }

    task<> send(std::int64_t n)
    {
        for (std::int64_t i = 0; i < n; ++i) {
            co_await tell<&receiver::take>(to_, number_, next_++);
            sent_.value.store(next_, std::memory_order_relaxed);
        }
    }

private:
    ref<receiver> to_;
    std::int64_t number_;
    sent_count& sent_;
    std::int64_t next_ = 0;
};

} // namespace

sample flood(std::int64_t n)
{
    runtime home({.threads = 2});
    sent_counts sent;
    auto to = home.spawn<receiver>(sent);
    std::vector<ref<sender>> from;
    from.reserve(senders);
    for (std::int64_t i = 0; i < senders; ++i)
        from.push_back(home.spawn<sender>(to, i, sent[static_cast<std::size_t>(i)]));
    auto all = [&](std::int64_t each) -> task<std::int64_t> {
        std::vector<task<>> sends;
        sends.reserve(from.size());
        for (auto const& one : from)
            sends.push_back(ask<&sender::send>(one, each));
        co_await when_all(std::move(sends));
        co_return co_await ask<&receiver::taken>(to);
    };
    auto measured = [&]() -> task<sample> {
        auto const before = co_await all(warm_up(n / senders));
        meter m;
        auto const taken = co_await all(n / senders);
        auto out = m.over(n / senders * senders);
        check(taken - before, n / senders * senders, "flood");
        co_return out;
    };
    return home.run(measured());
}

} // namespace plait::bench::with_plait
