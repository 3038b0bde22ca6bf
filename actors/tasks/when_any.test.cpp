#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/outcomes.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/when_any.hpp>

#include <memory>
#include <stdexcept>
#include <string>

using namespace plait;
using namespace plait::test;

namespace {

task<int> number_after(int yields, int n)
{
    for (int i = 0; i < yields; ++i) {
        co_await this_task::yield();
    }
    co_return n;
}

task<> yields()
{
    co_await this_task::yield();
}

task<std::string> fail_after(int yields, char const* what)
{
    for (int i = 0; i < yields; ++i) {
        co_await this_task::yield();
    }
    throw std::runtime_error(what);
}

} // namespace

CO_TEST_CASE("when_any gives the first value and says whose it is")
{
    auto first = co_await when_any(number_after(5, 1), wait_forever(), number_after(2, 3));
    CHECK(first.index() == 2);
    CHECK(std::get<2>(first) == 3);
    auto nothing = co_await when_any(wait_forever(), yields(), wait_forever());
    CHECK(nothing.index() == 1);
}

CO_TEST_CASE("when_any joins its losers before it returns")
{
    int ended = 0;
    auto slow_to_stop = [&]() -> task<> {
        auto wait = co_await as_result(wait_forever());
        CHECK(wait.error() == errc::cancelled);
        for (int i = 0; i < 10; ++i) {
            co_await this_task::yield();
        }
        ++ended;
    };
    auto first = co_await when_any(slow_to_stop(), number_after(1, 7), slow_to_stop());
    CHECK(first.index() == 1);
    CHECK(ended == 2);
}

CO_TEST_CASE("the first to end decides also when it fails")
{
    auto outcome = co_await as_result(when_any(number_after(5, 1), fail_after(1, "first"), fail_after(2, "second")));
    CHECK(what(outcome.failure()) == "first");
}

CO_TEST_CASE("a loser's exception does not escape from when_any")
{
    auto fails_when_stopped = []() -> task<> {
        auto wait = co_await as_result(wait_forever());
        if (!wait) throw std::runtime_error("late");
    };
    auto first = co_await when_any(fails_when_stopped(), number_after(1, 7));
    CHECK(first.index() == 1);
    CHECK(std::get<1>(first) == 7);
}

CO_TEST_CASE("the first of several that are ready at once is the first that was given")
{
    auto first = co_await when_any(number_after(0, 1), number_after(0, 2));
    CHECK(first.index() == 0);
}

CO_TEST_CASE("when_any of a range gives the place and the value")
{
    std::vector<task<int>> tasks;
    for (int i = 0; i < 100; ++i) {
        tasks.push_back(number_after(i == 42 ? 1 : 5, i));
    }
    auto [index, value] = co_await when_any(std::move(tasks));
    CHECK(index == 42);
    CHECK(value == 42);
    auto none = co_await as_result(when_any(std::vector<task<>>()));
    CHECK(none.error() == errc::invalid_argument);
}

CO_TEST_CASE("the task that failed is known when the tasks give results")
{
    auto kept = [](task<std::string> t) -> task<result<std::string>> { co_return co_await as_result(std::move(t)); };
    auto first = co_await when_any(kept(fail_after(3, "a")), kept(fail_after(1, "b")));
    CHECK(first.index() == 1);
    CHECK(what(std::get<1>(first).failure()) == "b");
}

CO_TEST_CASE("a stop of who waits for any is cancelled")
{
    stop_source source;
    auto waits = [&]() -> task<> {
        auto outcome = co_await test::under(source.token(), when_any(wait_forever(), wait_forever()));
        CHECK(outcome.error() == errc::cancelled);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        co_await this_task::yield();
        co_await this_task::yield();
        source.request_stop();
    };
    co_await with_scope(body);
}

CO_TEST_CASE("tasks that end at once do so also under a stop that came before")
{
    stop_source source;
    source.request_stop();
    auto first = co_await test::under(source.token(), when_any(number_after(0, 1), wait_forever(), number_after(0, 2)));
    REQUIRE(first.has_value());
    CHECK(first.value().index() == 0);
    auto none = co_await test::under(source.token(), when_any(wait_forever(), wait_forever()));
    CHECK(none.error() == errc::cancelled);
}

CO_TEST_CASE("what a loser holds goes before when_any returns")
{
    auto held = std::make_shared<int>(1);
    auto holds = [](std::shared_ptr<int> p) -> task<> {
        co_await wait_forever();
        p.reset();
    };
    auto first = co_await when_any(holds(held), number_after(1, 1));
    CHECK(first.index() == 1);
    CHECK(held.use_count() == 1);
}

namespace {

struct answers : actor {
    explicit answers(int n)
        : n_(n)
    {
    }
    task<int> answer(int yields)
    {
        for (int i = 0; i < yields; ++i) {
            co_await this_task::yield();
        }
        co_return n_;
    }
    int n_;
};

} // namespace

CO_TEST_CASE("asks of actors on two threads race, and exactly one is taken")
{
    auto one = rt.spawn_on<answers>(rt.new_loop("one"), 1);
    auto two = rt.spawn_on<answers>(rt.new_loop("two"), 2);
    int wins[2] = {0, 0};
    for (int i = 0; i < 1000; ++i) {
        auto first = co_await when_any(ask<&answers::answer>(one, i % 7), ask<&answers::answer>(two, i % 5));
        if (first.index() == 0) {
            CHECK(std::get<0>(first) == 1);
        } else {
            CHECK(std::get<1>(first) == 2);
        }
        ++wins[first.index()];
    }
    CHECK(wins[0] + wins[1] == 1000);
}

CO_TEST_CASE("the stop of a race and the end of its tasks may come from three threads")
{
    auto one = rt.spawn_on<answers>(rt.new_loop("one"), 1);
    auto two = rt.spawn_on<answers>(rt.new_loop("two"), 2);
    auto stopper = rt.spawn_on<test::place>(rt.new_loop("stops"));
    int decided = 0;
    int cancelled = 0;
    for (int i = 0; i < 1000; ++i) {
        stop_source source;
        std::function<task<>()> stops = [&]() -> task<> {
            source.request_stop();
            co_return;
        };
        auto race = [&]() -> task<> {
            auto outcome = co_await test::under(
                source.token(), when_any(ask<&answers::answer>(one, i % 7), ask<&answers::answer>(two, i % 5)));
            if (outcome) {
                ++decided;
            } else if (outcome.error() == errc::cancelled) {
                ++cancelled;
            }
        };
        co_await when_all(race(), ask<&test::place::run>(stopper, stops));
    }
    CHECK(decided + cancelled == 1000);
}
