#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/sync/semaphore.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/timeout.hpp>

#include <stdexcept>

using namespace plait;
using namespace std::chrono_literals;

namespace {

task<int> number_after(plait::clock& c, duration d, int n)
{
    if (d > duration::zero()) co_await c.sleep_for(d);
    co_return n;
}

/// Moves a clock on, a step at a time, until `t` has ended.
template<class T>
task<result<T>> with_time(manual_clock& c, task<T> t)
{
    result<T> outcome;
    auto body = [&](scope& s) -> task<> {
        auto runs = [&]() -> task<> { outcome = co_await as_result(std::move(t)); };
        s.start(runs);
        while (s.running() > 0) {
            for (int i = 0; i < 8; ++i) {
                co_await this_task::yield();
            }
            c.advance(1ms);
        }
    };
    co_await with_scope(body);
    co_return std::move(outcome);
}

} // namespace

CO_TEST_CASE("a task that ends in time gives its value, and the timer is called off")
{
    manual_clock c;
    auto value = co_await with_time(c, timeout(c, 10ms, number_after(c, 5ms, 7)));
    CHECK(value.value() == 7);
    CHECK(!c.advance_to_next());
    auto at_once = co_await timeout(c, 10ms, number_after(c, 0ms, 8));
    CHECK(at_once == 8);
    CHECK(!c.advance_to_next());
}

CO_TEST_CASE("a task that takes too long is stopped and joined, and the deadline is the error")
{
    manual_clock c;
    event never;
    bool joined = false;
    auto slow_to_stop = [&]() -> task<int> {
        auto wait = co_await as_result(never.wait());
        CHECK(wait.error() == errc::cancelled);
        co_await this_task::yield();
        joined = true;
        std::move(wait).value(); // throws what the wait threw
        co_return 0;
    };
    auto outcome = co_await with_time(c, timeout(c, 3ms, slow_to_stop()));
    CHECK(outcome.error() == errc::deadline_exceeded);
    CHECK(outcome.error() == std::errc::timed_out);
    CHECK(joined);
    CHECK(c.now() == time_point(4ms));
}

CO_TEST_CASE("a timeout may be a point in time")
{
    manual_clock c(time_point(1s));
    auto late = co_await with_time(c, timeout(c, time_point(1s + 2ms), number_after(c, 5ms, 7)));
    CHECK(late.error() == errc::deadline_exceeded);
    CHECK(c.now() == time_point(1s + 3ms));
    auto passed = co_await as_result(timeout(c, time_point(1s), number_after(c, 5ms, 7)));
    CHECK(passed.error() == errc::deadline_exceeded);
    auto ready = co_await as_result(timeout(c, time_point(1s), number_after(c, 0ms, 7)));
    CHECK(ready.value() == 7); // it never waited
}

CO_TEST_CASE("a timeout without an end does not overflow")
{
    manual_clock c(time_point(1s));
    auto value = co_await with_time(c, timeout(c, duration::max(), number_after(c, 2ms, 7)));
    CHECK(value.value() == 7);
}

CO_TEST_CASE("a stop from the caller is cancelled, not a deadline")
{
    manual_clock c;
    event never;
    stop_source source;
    auto waits = [&]() -> task<> {
        auto outcome = co_await test::under(source.token(), timeout(c, 10ms, wait_for(never)));
        CHECK(outcome.error() == errc::cancelled);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        for (int i = 0; i < 4; ++i) {
            co_await this_task::yield();
        }
        source.request_stop();
        c.advance(20ms); // the timer was called off
    };
    co_await with_scope(body);
}

CO_TEST_CASE("a failure of the task is its own, not a deadline")
{
    manual_clock c;
    event never;
    auto fails = [&]() -> task<> {
        auto wait = co_await as_result(never.wait());
        if (!wait) throw std::runtime_error("while stopping");
    };
    auto outcome = co_await with_time(c, timeout(c, 3ms, fails()));
    CHECK(outcome.error() == errc::engine_failed);
    auto gives_up = []() -> task<> {
        co_await this_task::yield();
        throw error(errc::cancelled, "by itself");
    };
    auto own = co_await as_result(timeout(c, 3ms, gives_up()));
    CHECK(own.error() == errc::cancelled);
}

CO_TEST_CASE("the inner of two timeouts is the one that fires")
{
    manual_clock c;
    event never;
    auto outcome = co_await with_time(c, timeout(c, 10ms, timeout(c, 2ms, wait_for(never))));
    CHECK(outcome.error() == errc::deadline_exceeded);
    CHECK(c.now() == time_point(3ms));
}

CO_TEST_CASE("a value that came although the deadline had passed is not lost")
{
    manual_clock c;
    channel<int> values(1);
    auto receives = [&]() -> task<std::optional<int>> { co_return co_await values.receive(); };
    auto body = [&](scope& s) -> task<> {
        auto waits = [&]() -> task<> {
            auto outcome = co_await as_result(timeout(c, 1ms, receives()));
            REQUIRE(outcome.has_value());
            CHECK(outcome.value() == 5);
        };
        s.start(waits);
        for (int i = 0; i < 4; ++i) {
            co_await this_task::yield();
        }
        CHECK(values.try_send(5)); // handed over, and then the timer fires before the receiver goes on
        c.advance(1ms);
    };
    co_await with_scope(body);
    CHECK(!values.try_receive());
}

CO_TEST_CASE("a permit that came in time is held, and one that didn't is not taken")
{
    manual_clock c;
    semaphore s(1);
    auto acquires = [&]() -> task<semaphore::permit> { co_return co_await s.acquire(); };
    auto held = co_await timeout(c, 1ms, acquires());
    CHECK(held.units() == 1);
    auto late = co_await with_time(c, timeout(c, 1ms, acquires()));
    CHECK(late.error() == errc::deadline_exceeded);
    held.release();
    CHECK(s.available() == 1);
}

namespace {

struct sleeper : actor {
    task<int> doze()
    {
        event never;
        auto wait = co_await as_result(never.wait());
        stopped_ = wait.error() == errc::cancelled;
        std::move(wait).value(); // throws what the wait threw
        co_return 0;
    }
    bool stopped() { return stopped_; }
    bool stopped_ = false;
};

} // namespace

CO_TEST_CASE("an ask that takes too long has its method stopped")
{
    auto a = rt.spawn<sleeper>();
    auto outcome = co_await as_result(timeout(rt.clock(), 1ms, ask<&sleeper::doze>(a)));
    CHECK(outcome.error() == errc::deadline_exceeded);
    auto stopped = co_await ask<&sleeper::stopped>(a);
    CHECK(stopped);
}

CO_TEST_CASE("a timer that fires while the task completes gives one outcome")
{
    auto setting = rt.spawn_on<test::place>(rt.new_loop("sets"));
    int in_time = 0;
    int late = 0;
    for (int round = 0; round < 500; ++round) {
        event e;
        std::function<task<>()> sets = [&]() -> task<> {
            if (round % 2 == 0) co_await rt.clock().sleep_for(20us);
            e.set();
        };
        auto waits = [&]() -> task<> {
            auto outcome = co_await as_result(timeout(rt.clock(), 20us, wait_for(e)));
            if (outcome) {
                ++in_time;
            } else if (outcome.error() == errc::deadline_exceeded) {
                ++late;
            }
        };
        co_await when_all(waits(), ask<&test::place::run>(setting, sets));
    }
    CHECK(in_time + late == 500);
}
