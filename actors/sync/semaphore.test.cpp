#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/sync/semaphore.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace plait;
using test::place;

CO_TEST_CASE("a semaphore lets no more in than it has units")
{
    semaphore s(2);
    int inside = 0;
    int most = 0;
    int ended = 0;
    auto works = [&]() -> task<> {
        auto permit = co_await s.acquire();
        most = std::max(most, ++inside);
        co_await this_task::yield();
        --inside;
        ++ended;
    };
    auto body = [&](scope& all) -> task<> {
        for (int i = 0; i < 10; ++i) {
            all.start(works);
        }
        co_return;
    };
    co_await with_scope(body);
    CHECK(most == 2);
    CHECK(ended == 10);
    CHECK(s.available() == 2);
}

CO_TEST_CASE("a permit can be moved, and is given back once")
{
    semaphore s(3);
    {
        auto a = co_await s.acquire(2);
        CHECK(a.units() == 2);
        auto b = std::move(a);
        CHECK(!a);
        CHECK(s.available() == 1);
        a = std::move(b);
        b.release();
        CHECK(s.available() == 1);
        a.release();
        CHECK(!a);
        CHECK(s.available() == 3);
        a.release();
    }
    CHECK(s.available() == 3);
}

CO_TEST_CASE("a semaphore serves first come, first served, and a small request does not overtake a large one")
{
    semaphore s(4);
    std::string order;
    auto takes = [&](char name, std::size_t units) -> task<> {
        auto permit = co_await s.acquire(units);
        order += name;
    };
    auto first = co_await s.acquire(3);
    auto body = [&](scope& all) -> task<> {
        all.start(takes, 'a', 4U);
        all.start(takes, 'b', 1U);
        all.start(takes, 'c', 0U);
        co_await this_task::yield();
        CHECK(order.empty());
        CHECK(s.available() == 1);
        auto overtaking = s.try_acquire();
        CHECK(!overtaking);
        first.release();
    };
    co_await with_scope(body);
    CHECK(order == "abc");
}

CO_TEST_CASE("more units than there ever are is an error, not a wait without an end")
{
    semaphore s(2);
    auto never = co_await as_result(s.acquire(3));
    CHECK(never.error() == errc::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(s.try_acquire(3)), error);
    auto all = s.try_acquire(2);
    CHECK(all.units() == 2);
}

CO_TEST_CASE("a cancelled waiter takes no permit")
{
    semaphore s(1);
    auto held = co_await s.acquire();
    errc end{};
    auto waits = [&]() -> task<> {
        auto outcome = co_await as_result(s.acquire());
        end = static_cast<errc>(outcome.error().value());
    };
    auto body = [&](scope& all) -> task<> {
        all.start(waits);
        co_await this_task::yield();
        all.request_stop();
        held.release();
        CHECK(s.available() == 1);
    };
    co_await with_scope(body);
    CHECK(end == errc::cancelled);
    CHECK(s.available() == 1);
}

CO_TEST_CASE("a permit that was granted before the stop is given")
{
    semaphore s(1);
    auto held = co_await s.acquire();
    bool given = false;
    auto waits = [&]() -> task<> {
        auto permit = co_await s.acquire();
        given = static_cast<bool>(permit);
    };
    auto body = [&](scope& all) -> task<> {
        all.start(waits);
        co_await this_task::yield();
        held.release();
        all.request_stop();
    };
    co_await with_scope(body);
    CHECK(given);
    CHECK(s.available() == 1);
}

CO_TEST_CASE("neither a release nor a stop resumes anybody inside the call")
{
    semaphore s(1);
    auto held = s.try_acquire();
    stop_source source;
    int resumed = 0;
    auto takes = [&]() -> task<> { auto permit = co_await s.acquire(); };
    auto stopped = [&]() -> task<> {
        auto outcome = co_await test::under(source.token(), takes());
        CHECK(outcome.error() == errc::cancelled);
        ++resumed;
    };
    auto served = [&]() -> task<> {
        co_await takes();
        ++resumed;
    };
    auto body = [&](scope& all) -> task<> {
        all.start(stopped);
        all.start(served);
        co_await this_task::yield();
        source.request_stop();
        held.release();
        CHECK(resumed == 0);
    };
    co_await with_scope(body);
    CHECK(resumed == 2);
}

CO_TEST_CASE("a stop refuses an acquire that could have gone on")
{
    semaphore s(1);
    stop_source source;
    source.request_stop();
    auto acquires = [&]() -> task<semaphore::permit> { co_return co_await s.acquire(); };
    auto outcome = co_await test::under(source.token(), acquires());
    CHECK(outcome.error() == errc::cancelled);
    CHECK(s.available() == 1);
}

CO_TEST_CASE("a cancelled waiter in front lets those behind it in")
{
    semaphore s(4);
    auto held = co_await s.acquire(2);
    stop_source source;
    auto takes = [&](std::size_t units) -> task<bool> {
        auto permit = co_await s.acquire(units);
        co_return static_cast<bool>(permit);
    };
    errc large{};
    int small = 0;
    auto waits_for_all = [&]() -> task<> {
        auto outcome = co_await test::under(source.token(), takes(4));
        large = static_cast<errc>(outcome.error().value());
    };
    auto waits_for_one = [&]() -> task<> { small += co_await takes(1); };
    auto body = [&](scope& all) -> task<> {
        all.start(waits_for_all);
        all.start(waits_for_one);
        all.start(waits_for_one);
        co_await this_task::yield();
        CHECK(small == 0);
        source.request_stop();
    };
    co_await with_scope(body); // `held` is still held
    CHECK(large == errc::cancelled);
    CHECK(small == 2);
    CHECK(s.available() == 2);
}

CO_TEST_CASE("no wake-up is lost when a stop races with a release")
{
    auto third = rt.spawn_on<place>(rt.new_loop("behind it"));
    test::stop_race race(rt);
    int behind = 0;
    for (int round = 0; round < 1000; ++round) {
        semaphore s(1);
        auto held = s.try_acquire();
        event asked;
        if (round % 2 == 0) asked.set();
        auto first = [&]() -> task<> {
            asked.set();
            auto permit = co_await s.acquire();
        };
        std::function<task<>()> second = [&]() -> task<> {
            co_await asked.wait();
            auto permit = co_await s.acquire();
            ++behind;
        };
        std::function<void()> releases = [&] { held.release(); };
        // The second comes before the first or behind it; it gets its permit in any case.
        co_await when_all(race.run(first(), releases), ask<&place::run>(third, second));
        CHECK(s.available() == 1);
    }
    CHECK(race.completed + race.cancelled == 1000);
    CHECK(behind == 1000);
}

CO_TEST_CASE("no wake-up is lost when a stop takes out the waiter in front of a smaller request")
{
    auto third = rt.spawn_on<place>(rt.new_loop("behind it"));
    test::stop_race race(rt);
    for (int round = 0; round < 1000; ++round) {
        semaphore s(3);
        auto held = s.try_acquire(2);
        auto all = [&]() -> task<> { auto permit = co_await s.acquire(3); };
        std::function<task<>()> one = [&]() -> task<> { auto permit = co_await s.acquire(1); };
        std::function<void()> releases = [&] { held.release(); };
        co_await when_all(race.run(all(), releases), ask<&place::run>(third, one));
        CHECK(s.available() == 3);
    }
    CHECK(race.completed + race.cancelled == 1000);
}

CO_TEST_CASE("units are neither lost nor made when many threads acquire, release and stop")
{
    constexpr int places = 3;
    constexpr int rounds = 20'000;
    semaphore s(3);
    std::atomic<int> held{0};
    std::atomic<int> acquired{0};
    std::atomic<bool> too_many{false};
    std::atomic<int> ended{0};
    std::array<stop_source, places> sources;
    auto works = [&](int n) -> task<> {
        auto units = static_cast<std::size_t>(n % 3 + 1);
        for (int i = 0; i < rounds; ++i) {
            auto permit = co_await s.acquire(units);
            ++acquired;
            if (held.fetch_add(n % 3 + 1) + n % 3 + 1 > 3) too_many = true;
            if (i % 8 == 0) co_await this_task::yield();
            held.fetch_sub(n % 3 + 1);
        }
    };
    std::vector<task<>> all;
    for (int i = 0; i < places; ++i) {
        auto where = rt.spawn_on<place>(rt.new_loop("place " + std::to_string(i)));
        std::function<task<>()> run = [&, i]() -> task<> {
            auto outcome = co_await test::under(sources[static_cast<std::size_t>(i)].token(), works(i));
            if (outcome || outcome.error() == errc::cancelled) ++ended;
        };
        all.push_back(ask<&place::run>(where, run));
    }
    auto body = [&](scope& sc) -> task<> {
        for (auto& t : all) {
            sc.start(std::move(t));
        }
        while (acquired < rounds) {
            co_await this_task::yield();
            std::this_thread::yield();
        }
        for (auto& source : sources) {
            source.request_stop();
        }
    };
    co_await with_scope(body);
    CHECK(ended == places);
    CHECK(!too_many);
    CHECK(s.available() == 3);
}

CO_TEST_CASE("a hundred thousand waiting acquires are cancelled by one stop")
{
    semaphore s(1);
    auto held = co_await s.acquire();
    int cancelled = 0;
    auto waits = [&]() -> task<> {
        auto outcome = co_await as_result(s.acquire());
        if (outcome.error() == errc::cancelled) ++cancelled;
    };
    auto body = [&](scope& all) -> task<> {
        for (int i = 0; i < 100'000; ++i) {
            all.start(waits);
        }
        co_await this_task::yield();
        all.request_stop();
    };
    co_await with_scope(body);
    CHECK(cancelled == 100'000);
}
