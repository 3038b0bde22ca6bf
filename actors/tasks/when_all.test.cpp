#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/outcomes.hpp>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/when_all.hpp>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

using namespace plait;
using namespace plait::test;

namespace {

task<int> number(int n)
{
    co_await this_task::yield();
    co_return n;
}

task<> yields()
{
    co_await this_task::yield();
}

task<int&> refers_to(int& n)
{
    co_await this_task::yield();
    co_return n;
}

struct adder : actor {
    int add(int a, int b) { return a + b; }
};

} // namespace

CO_TEST_CASE("when_all gives every value")
{
    auto [a, nothing, c] = co_await when_all(number(1), yields(), number(4));
    CHECK(a == 1);
    CHECK(nothing == std::monostate());
    CHECK(c == 4);
}

CO_TEST_CASE("when_all gives values that can only be moved, and references")
{
    int n = 7;
    auto owned = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
    auto [p, r] = co_await when_all(owned(), refers_to(n));
    CHECK(*p == 3);
    CHECK(&r.get() == &n);
}

CO_TEST_CASE("when_all takes asks")
{
    auto a = rt.spawn<adder>();
    auto [x, y] = co_await when_all(ask<&adder::add>(a, 1, 2), ask<&adder::add>(a, 3, 4));
    CHECK(x == 3);
    CHECK(y == 7);
}

CO_TEST_CASE("when_all of a range keeps the order")
{
    std::vector<task<int>> tasks;
    for (int i = 0; i < 100; ++i) {
        tasks.push_back(number(i));
    }
    auto values = co_await when_all(std::move(tasks));
    bool ordered = values.size() == 100;
    for (int i = 0; ordered && i < 100; ++i) {
        ordered = values[static_cast<std::size_t>(i)] == i;
    }
    CHECK(ordered);

    std::array<task<>, 2> two;
    two[0] = yields();
    two[1] = yields();
    auto nothing = co_await when_all(std::move(two));
    CHECK(nothing.size() == 2);
}

CO_TEST_CASE("when_all of nothing is done at once")
{
    auto values = co_await when_all(std::vector<task<int>>());
    CHECK(values.empty());
    auto none = co_await when_all();
    CHECK(none == std::tuple<>());
}

CO_TEST_CASE("when_all cancels the others when one fails, and joins them")
{
    bool ended = false;
    auto slow_to_stop = [&]() -> task<> {
        auto wait = co_await as_result(wait_forever());
        CHECK(wait.error() == errc::cancelled);
        co_await this_task::yield();
        ended = true;
    };
    auto outcome = co_await as_result(when_all(wait_forever(), fail_with("one"), slow_to_stop()));
    CHECK(what(outcome.failure()) == "one");
    CHECK(ended);
}

CO_TEST_CASE("a stop of who waits for all reaches each of them")
{
    stop_source source;
    task_context context = co_await detail::current_context();
    context.stop = source.token();
    auto stops = [&]() -> task<> {
        co_await this_task::yield();
        source.request_stop();
    };
    auto outcome =
        co_await detail::result_with_context(when_all(wait_forever(), shield(stops()), wait_forever()), context);
    CHECK(outcome.error() == errc::cancelled);
}

CO_TEST_CASE("when_all of an empty task says so")
{
    auto outcome = co_await as_result(when_all(task<int>(), wait_forever()));
    CHECK(outcome.error() == errc::invalid_argument);
}

namespace {

task<long> leaves(int depth)
{
    if (depth == 0) co_return 1;
    auto [a, b] = co_await when_all(leaves(depth - 1), leaves(depth - 1));
    co_return a + b;
}

/// A chain of groups, each inside the one before.
task<long> nested(int depth)
{
    if (depth == 0) co_return 0;
    auto below = co_await when_all(nested(depth - 1));
    co_return std::get<0>(below) + 1;
}

} // namespace

CO_TEST_CASE("a tree of groups adds up")
{
    auto n = co_await leaves(12);
    CHECK(n == 4096);
}

CO_TEST_CASE("groups nest as deep as memory allows")
{
    auto depth = co_await nested(100'000);
    CHECK(depth == 100'000);
}

CO_TEST_CASE("the tasks of a group start in their order, each before the next, and before the caller goes on")
{
    std::vector<int> order;
    auto step = [&](int n) -> task<> {
        order.push_back(n);
        co_await this_task::yield();
        order.push_back(10 + n);
    };
    auto first = step(1);
    auto second = step(2);
    co_await when_all(std::move(first), std::move(second));
    CHECK(order == std::vector{1, 2, 11, 12});
}
