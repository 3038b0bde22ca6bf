#include <plait/tests/support/co_test.hpp>

#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/time/clock.hpp>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

CO_TEST_CASE("a manual clock wakes sleepers in order of time")
{
    manual_clock c;
    std::vector<int> woken;
    auto sleeper = [&](int n) -> task<> {
        co_await c.sleep_for(n * 1ms);
        woken.push_back(n);
    };
    auto body = [&](scope& s) -> task<> {
        for (int n : {5, 1, 4, 2, 3}) {
            s.start(sleeper(n));
        }
        co_await this_task::yield();
        c.advance(2ms);
        co_await this_task::yield();
        CHECK(woken == std::vector{1, 2});
        c.advance(10ms);
    };
    co_await with_scope(body);
    CHECK(woken == std::vector{1, 2, 3, 4, 5});
    CHECK(c.now() == time_point(12ms));
}

CO_TEST_CASE("sleepers due together wake in the order in which they lay down")
{
    manual_clock c;
    std::vector<int> woken;
    auto sleeper = [&](int n) -> task<> {
        co_await c.sleep_for(1s);
        woken.push_back(n);
    };
    auto body = [&](scope& s) -> task<> {
        for (int n = 0; n < 50; ++n) {
            s.start(sleeper(n));
        }
        co_await this_task::yield();
        CHECK(c.advance_to_next());
    };
    co_await with_scope(body);
    CHECK(woken.size() == 50);
    CHECK(std::is_sorted(woken.begin(), woken.end()));
    CHECK(!c.advance_to_next());
}

CO_TEST_CASE("a time that has passed is not waited for")
{
    manual_clock c(time_point(1h));
    co_await c.sleep_until(time_point(30min));
    co_await c.sleep_for(-5s);
    CHECK(c.now() == time_point(1h));
}

CO_TEST_CASE("who sleeps till the end of time is woken then, and never before")
{
    manual_clock c;
    int woken = 0;
    auto sleeper = [&](time_point due) -> task<> {
        co_await c.sleep_until(due);
        ++woken;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sleeper(time_point::max()));
        s.start(sleeper(time_point::max() - 1ns));
        s.start(sleeper(time_point::min()));
        co_await this_task::yield();
        co_await this_task::yield();
        CHECK(woken == 1);
        c.advance(time_point::max() - time_point(1ns));
        co_await this_task::yield();
        CHECK(woken == 2);
        CHECK(c.next_due() == time_point::max());
        c.advance(duration::max());
    };
    co_await with_scope(body);
    CHECK(woken == 3);
}

CO_TEST_CASE("a sleep that is cut short says so as a result, without an exception being thrown")
{
    manual_clock c;
    std::error_code ended;
    bool whole = false;
    auto short_sleep = [&]() -> task<> {
        auto outcome = co_await as_result(c.sleep_for(1h));
        ended = outcome.error();
    };
    auto whole_sleep = [&]() -> task<> {
        auto outcome = co_await as_result(c.sleep_for(1s));
        whole = outcome.has_value();
    };
    auto body = [&](scope& s) -> task<> {
        s.start(short_sleep);
        s.start(whole_sleep);
        co_await this_task::yield();
        co_await this_task::yield();
        c.advance(1s);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(ended == errc::cancelled);
    CHECK(whole);
}

namespace {

/// Counts how often whoever waits for it is disturbed.
class counting_clock final : public clock {
public:
    time_point now() const noexcept override { return now_; }
    std::optional<time_point> move_to(time_point t, std::size_t most = all) noexcept
    {
        now_ = t;
        return fire(t, most);
    }
    int disturbed = 0;

private:
    void earliest_changed() noexcept override { ++disturbed; }
    time_point now_;
};

} // namespace

CO_TEST_CASE("only a sleeper who is due before all others disturbs the one who waits")
{
    counting_clock c;
    auto sleeper = [&](duration d) -> task<> {
        auto outcome = co_await as_result(c.sleep_for(d));
        static_cast<void>(outcome);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sleeper(10s));
        for (int i = 0; i < 100; ++i)
            s.start(sleeper(20s + i * 1s));
        co_await this_task::yield();
        CHECK(c.disturbed == 1);
        s.start(sleeper(5s));
        co_await this_task::yield();
        CHECK(c.disturbed == 2);
        CHECK(c.move_to(time_point(4s)) == time_point(5s));
        CHECK(c.move_to(time_point(5s)) == time_point(10s));
        s.start(sleeper(1s));
        co_await this_task::yield();
        CHECK(c.disturbed == 3);
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(!c.move_to(time_point(1h)));
    CHECK(c.disturbed == 3);
}

CO_TEST_CASE("a clock may fire a few of a crowd at once, and is told that the others are due")
{
    counting_clock c;
    std::vector<int> woken;
    auto sleeper = [&](int n) -> task<> {
        co_await c.sleep_until(time_point(duration(n)));
        woken.push_back(n);
    };
    auto body = [&](scope& s) -> task<> {
        for (int n : {5, 3, 4, 1, 2})
            s.start(sleeper, n);
        s.start(sleeper, 100);
        co_await this_task::yield();
        CHECK(c.move_to(time_point(50ns), 2) == time_point(3ns));
        co_await this_task::yield();
        CHECK(woken == std::vector{1, 2});
        CHECK(c.move_to(time_point(50ns), 3) == time_point(100ns));
        co_await this_task::yield();
        CHECK(woken == std::vector{1, 2, 3, 4, 5});
        CHECK(!c.move_to(time_point(100ns), 3));
    };
    co_await with_scope(body);
    CHECK(woken.size() == 6);
}

CO_TEST_CASE("a thousand sleepers, a third of them cancelled, wake in order")
{
    manual_clock c;
    std::mt19937 random(7);
    std::vector<int> woken;
    int cancelled = 0;
    auto sleeper = [&](int n) -> task<> {
        try {
            co_await c.sleep_for(n * 1us);
            woken.push_back(n);
        } catch (error const& e) {
            CHECK(e.condition() == errc::cancelled);
            ++cancelled;
        }
    };
    auto kept = [&](scope& s) -> task<> {
        auto dropped = [&](scope& inner) -> task<> {
            for (int i = 0; i < 1000; ++i) {
                auto& where = i % 3 == 0 ? inner : s;
                where.start(sleeper(1 + static_cast<int>(random() % 500)));
            }
            co_await this_task::yield();
            inner.request_stop();
        };
        co_await with_scope(dropped);
        CHECK(cancelled == 334);
        while (s.running() > 0) {
            c.advance_to_next();
            co_await this_task::yield();
        }
    };
    co_await with_scope(kept);
    CHECK(woken.size() == 666);
    CHECK(std::is_sorted(woken.begin(), woken.end()));
}

CO_TEST_CASE("the machine's clock wakes a sleeper not before its time")
{
    auto& c = rt.clock();
    auto start = c.now();
    auto sleeper = [&](int n) -> task<> { co_await c.sleep_for(n * 1ms); };
    co_await when_all(sleeper(3), sleeper(1), sleeper(2));
    CHECK(c.now() - start >= 3ms);
}

CO_TEST_CASE("a long sleep on the machine's clock is cut short by a stop")
{
    auto& c = rt.clock();
    auto sleeper = [&]() -> task<> { co_await c.sleep_for(24h); };
    auto start = c.now();
    auto body = [&](scope& s) -> task<> {
        s.start(sleeper);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(c.now() - start < 24h);
}

TEST_CASE("a runtime shows its tasks the clock that it was given")
{
    test::frame_check frames;
    manual_clock c(time_point(5s));
    runtime_options options;
    options.clock = &c;
    runtime rt(options);
    CHECK(rt.clock().now() == time_point(5s));
}

CO_TEST_CASE("a stop that races with a timer resumes once")
{
    auto& c = rt.clock();
    int woken = 0;
    int cancelled = 0;
    for (int i = 0; i < 500; ++i) {
        auto sleeper = [&]() -> task<> {
            try {
                co_await c.sleep_for(20us);
                ++woken;
            } catch (error const&) {
                ++cancelled;
            }
        };
        auto body = [&](scope& s) -> task<> {
            s.start(sleeper);
            co_await c.sleep_for(20us);
            s.request_stop();
        };
        co_await with_scope(body);
    }
    CHECK(woken + cancelled == 500);
}

TEST_CASE("a made-up clock counts its date from 1970, the machine's gives the local one")
{
    manual_clock made_up(time_point(24h + 90s + 5ns));
    CHECK(made_up.date() == std::chrono::sys_days(std::chrono::days(1)) + 90s);
    monotonic_clock machine;
    // Zones differ from UTC by less than a day and a half.
    auto const utc = std::time(nullptr);
    CHECK(std::abs(static_cast<long>(machine.date().time_since_epoch().count() - utc)) < 36 * 3600);
}
