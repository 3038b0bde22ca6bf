#include <plait/tests/support/co_test.hpp>

#include <plait/actors/tasks/generator.hpp>

#include <stdexcept>

using namespace plait;

namespace {

generator<int> count(int n)
{
    for (int i = 0; i < n; ++i) {
        if (i % 3 == 1) co_await this_task::yield();
        co_yield i;
    }
}

generator<int> breaks()
{
    co_yield 1;
    co_await this_task::yield();
    throw std::runtime_error("broken");
}

generator<int> doubled(generator<int> source)
{
    for (;;) {
        auto value = co_await source.next();
        if (!value) co_return;
        co_yield 2 * *value;
    }
}

} // namespace

CO_TEST_CASE("a generator gives its values one by one and then nothing")
{
    auto g = count(10);
    long sum = 0;
    for (;;) {
        auto value = co_await g.next();
        if (!value) break;
        sum += *value;
    }
    CHECK(sum == 45);
    auto after = co_await g.next();
    CHECK(!after);
}

CO_TEST_CASE("a million values do not grow the stack")
{
    auto g = count(1'000'000);
    long n = 0;
    for (;;) {
        auto value = co_await g.next();
        if (!value) break;
        ++n;
    }
    CHECK(n == 1'000'000);
}

CO_TEST_CASE("a generator runs only while its reader waits")
{
    int made = 0;
    auto makes = [&]() -> generator<int> {
        for (;;) {
            co_yield ++made;
        }
    };
    auto g = makes();
    CHECK(made == 0);
    co_await g.next();
    CHECK(made == 1);
    co_await this_task::yield();
    CHECK(made == 1);
}

CO_TEST_CASE("a generator's exception comes out of next, once")
{
    auto g = breaks();
    auto one = co_await g.next();
    CHECK(one == 1);
    bool thrown = false;
    try {
        co_await g.next();
    } catch (std::runtime_error const&) {
        thrown = true;
    }
    CHECK(thrown);
    auto after = co_await g.next();
    CHECK(!after);
}

CO_TEST_CASE("a generator reads another, and one dropped half-way frees its frame")
{
    auto g = doubled(count(1000));
    for (int i = 0; i < 5; ++i) {
        auto value = co_await g.next();
        CHECK(value == 2 * i);
    }
}
