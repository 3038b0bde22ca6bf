#include <plait/apps/bench/runtime/peers/threads/threads.hpp>

#include <plait/apps/bench/runtime/processors.hpp>

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace plait::bench::with_threads {

namespace {

template<class T>
class bounded_queue {
public:
    explicit bounded_queue(std::size_t capacity)
        : capacity_(capacity)
    {
    }

    void send(T value)
    {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return values_.size() < capacity_; });
        values_.push_back(std::move(value));
        lock.unlock();
        ready_.notify_one();
    }

    T receive()
    {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return !values_.empty(); });
        auto value = std::move(values_.front());
        values_.pop_front();
        lock.unlock();
        room_.notify_one();
        return value;
    }

private:
    std::mutex mutex_;
    std::condition_variable room_, ready_;
    std::deque<T> values_;
    std::size_t const capacity_;
};

constexpr std::int64_t peers = 4;

std::int64_t exchange(bounded_queue<std::int64_t>& values, std::int64_t n)
{
    std::vector<std::thread> threads;
    std::vector<std::int64_t> sums(peers);
    for (std::int64_t i = 0; i < peers; ++i) {
        threads.emplace_back([&values, i, n] {
            for (auto v = i; v < n; v += peers)
                values.send(v);
        });
        threads.emplace_back([&values, &sum = sums[static_cast<std::size_t>(i)], n] {
            for (std::int64_t v = 0; v < n / peers; ++v)
                sum += values.receive();
        });
    }
    for (auto& t : threads)
        t.join();
    std::int64_t sum = 0;
    for (auto const one : sums)
        sum += one;
    return sum;
}

} // namespace

sample ask_asleep(std::int64_t n)
{
    bounded_queue<std::int64_t> asks(1), answers(1);
    on_processor first(processor(0));
    std::thread other([&] {
        on_processor second(processor(1));
        for (auto i = asks.receive(); i >= 0; i = asks.receive())
            answers.send(i);
    });
    auto trips = [&](std::int64_t count) {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            asks.send(i);
            sum += answers.receive();
        }
        return sum;
    };
    trips(warm_up(n));
    std::int64_t sum = 0;
    laps times(n);
    for (; times.left(); times.lap())
        sum += trips(times.part());
    auto out = times.over();
    asks.send(-1);
    other.join();
    check(sum, times.sum(), "ask");
    return out;
}

sample spawn_and_stop(std::int64_t n)
{
    std::int64_t ended = 0;
    meter m;
    for (std::int64_t i = 0; i < n; ++i)
        std::thread([&] { ++ended; }).join();
    auto const out = m.over(n);
    check(ended, n, "spawn");
    return out;
}

sample many_to_many_across(std::int64_t n)
{
    n = n / peers * peers;
    bounded_queue<std::int64_t> values(64);
    exchange(values, n / 8 * peers);
    meter m;
    auto const sum = exchange(values, n);
    auto const out = m.over(n);
    check(sum, sum_below(n), "channel");
    return out;
}

sample all_reduce(std::size_t ranks, std::int64_t floats, std::int64_t n)
{
    auto const size = static_cast<std::size_t>(floats);
    std::vector<std::vector<float>> inputs, sums(ranks, std::vector<float>(size));
    for (std::size_t rank = 0; rank < ranks; ++rank)
        inputs.emplace_back(size, static_cast<float>(rank + 1));
    std::barrier all(static_cast<std::ptrdiff_t>(ranks));
    meter m;
    auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
    auto one = [&](std::size_t rank) {
        for (std::int64_t i = -warm_up(n); i < n; ++i) {
            all.arrive_and_wait();
            if (i == 0 && rank == 0) m = meter();
            auto const from = size * rank / ranks, end = size * (rank + 1) / ranks;
            auto& own = sums[rank];
            std::copy(inputs[0].begin() + at(from), inputs[0].begin() + at(end), own.begin() + at(from));
            for (std::size_t other = 1; other < ranks; ++other)
                for (auto k = from; k < end; ++k)
                    own[k] += inputs[other][k];
            for (auto& to : sums)
                if (&to != &own) std::copy(own.begin() + at(from), own.begin() + at(end), to.begin() + at(from));
            all.arrive_and_wait();
        }
    };
    std::vector<std::thread> others;
    for (std::size_t rank = 1; rank < ranks; ++rank)
        others.emplace_back(one, rank);
    one(0);
    for (auto& t : others)
        t.join();
    auto out = m.over(n);
    out.value /= 1e3;
    check(static_cast<std::int64_t>(sums.back().back()), sum_below(static_cast<std::int64_t>(ranks) + 1),
          "sum of the ranks");
    return out;
}

} // namespace plait::bench::with_threads
