#include <plait/engine/load_balance.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using namespace plait;

TEST_CASE("each request goes to the replica with the fewest choices, and counts until its choices are over")
{
    auto const all = std::make_shared<load_balance>(3);
    auto big = load_balance::take(all, 4);
    auto one = load_balance::take(all, 1);
    auto two = load_balance::take(all, 2);
    CHECK(big.replica() == 0);
    CHECK(one.replica() == 1);
    CHECK(two.replica() == 2);
    CHECK(load_balance::take(all, 1).replica() == 1); // and is over at once
    CHECK(load_balance::take(all, 1).replica() == 1);
    big.give_back(4);
    CHECK(load_balance::take(all, 1).replica() == 0);
    auto moved = std::move(one);
    moved = load_balance::place();
    CHECK(load_balance::take(all, -7).replica() == 0);
}

TEST_CASE("a replica that takes no requests gets one only where none does")
{
    auto const all = std::make_shared<load_balance>(2);
    all->close(0);
    auto const first = load_balance::take(all, 1);
    auto const second = load_balance::take(all, 1);
    CHECK(first.replica() == 1);
    CHECK(second.replica() == 1);
    all->close(1);
    CHECK(load_balance::take(all, 1).replica() == 0);
}

TEST_CASE("requests of several threads are spread evenly, and nothing is left over")
{
    auto const all = std::make_shared<load_balance>(4);
    std::vector<load_balance::place> places(4 * 250);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 250; ++i)
                places[t * 250 + i] = load_balance::take(all, 1);
        });
    for (auto& t : threads)
        t.join();
    std::vector<int> of(4);
    for (auto const& p : places)
        ++of[p.replica()];
    CHECK(of == std::vector<int>(4, 250));
    places.clear();
    for (std::size_t i = 0; i < 4; ++i)
        places.push_back(load_balance::take(all, 1));
    CHECK(places.back().replica() == 3);
}
