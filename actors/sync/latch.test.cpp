#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/latch.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <memory>

using namespace plait;
using test::place;

CO_TEST_CASE("a latch resumes all that wait when its count is zero, and stays open")
{
    latch l(3);
    int resumed = 0;
    auto waits = [&]() -> task<> {
        co_await l.wait();
        ++resumed;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        s.start(waits);
        l.count_down(2);
        co_await this_task::yield();
        CHECK(resumed == 0);
        CHECK(!l.try_wait());
        l.count_down();
        CHECK(l.try_wait());
    };
    co_await with_scope(body);
    CHECK(resumed == 2);
    co_await l.wait();
}

CO_TEST_CASE("a latch of nothing is open")
{
    latch l(0);
    CHECK(l.try_wait());
    l.count_down(0);
    co_await l.wait();
}

TEST_CASE("a latch that is counted down below zero says so and stays as it was")
{
    latch l(2);
    CHECK_THROWS_AS(l.count_down(3), error);
    CHECK(!l.try_wait());
    l.count_down(2);
    CHECK(l.try_wait());
    CHECK_THROWS_AS(l.count_down(), error);
}

CO_TEST_CASE("a cancelled waiter of a latch says so, and its arrival counts")
{
    latch l(2);
    stop_source source;
    auto arrives = [&]() -> task<> { co_await l.arrive_and_wait(); };
    auto waits = [&]() -> task<> {
        auto outcome = co_await test::under(source.token(), arrives());
        CHECK(outcome.error() == errc::cancelled);
        CHECK(outcome.error() == std::errc::operation_canceled);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        co_await this_task::yield();
        source.request_stop();
    };
    co_await with_scope(body);
    CHECK(!l.try_wait());
    auto last = co_await as_result(l.arrive_and_wait());
    CHECK(last.has_value());
}

CO_TEST_CASE("what was done before counting down is seen by who waits, on any thread")
{
    auto one = rt.spawn_on<place>(rt.new_loop("one"));
    auto other = rt.spawn_on<place>(rt.new_loop("other"));
    for (int round = 0; round < 1000; ++round) {
        // A waiter may destroy the latch while the last count_down is returning.
        auto l = std::make_unique<latch>(2);
        int a = 0;
        int b = 0;
        auto* p = l.get();
        std::function<task<>()> first = [&a, p]() -> task<> {
            a = 1;
            p->count_down();
            co_return;
        };
        std::function<task<>()> second = [&b, p]() -> task<> {
            b = 2;
            p->count_down();
            co_return;
        };
        co_await tell<&place::run>(one, first);
        co_await tell<&place::run>(other, second);
        co_await l->wait();
        l.reset();
        CHECK(a + b == 3);
    }
}

CO_TEST_CASE("a stop that races with the last count down resumes once")
{
    test::stop_race race(rt);
    for (int round = 0; round < 1000; ++round) {
        latch l(1);
        auto waits = [&]() -> task<> { co_await l.wait(); };
        std::function<void()> counts = [&] { l.count_down(); };
        co_await race.run(waits(), counts);
        CHECK(l.try_wait());
    }
    CHECK(race.completed + race.cancelled == 1000);
}
