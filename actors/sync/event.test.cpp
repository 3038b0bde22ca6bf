#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <string>

using namespace plait;

CO_TEST_CASE("an event resumes all that wait and stays set until reset")
{
    event e;
    int resumed = 0;
    auto waits = [&]() -> task<> {
        co_await e.wait();
        ++resumed;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        s.start(waits);
        co_await this_task::yield();
        CHECK(resumed == 0);
        e.set();
        CHECK(e.is_set());
    };
    co_await with_scope(body);
    CHECK(resumed == 2);
    co_await e.wait();
    e.reset();
    CHECK(!e.is_set());
}

namespace {

struct setter : actor {
    void set(event* e) { e->set(); }
};

} // namespace

CO_TEST_CASE("a waiter may destroy the event that another thread has just set")
{
    auto other = rt.spawn_on<setter>(rt.new_loop("setter"));
    for (int i = 0; i < 2000; ++i) {
        auto e = std::make_unique<event>();
        co_await tell<&setter::set>(other, e.get());
        co_await e->wait();
    }
}

CO_TEST_CASE("those who waited when an event was set go on although it was reset at once")
{
    event e;
    std::string order;
    auto waits = [&](char name) -> task<> {
        co_await e.wait();
        order += name;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits, 'a');
        s.start(waits, 'b');
        s.start(waits, 'c');
        co_await this_task::yield();
        e.set();
        e.reset();
    };
    co_await with_scope(body);
    CHECK(order == "abc");
    CHECK(!e.is_set());
}

CO_TEST_CASE("a stop that races with setting an event resumes once")
{
    test::stop_race race(rt);
    for (int round = 0; round < 1000; ++round) {
        event e;
        auto waits = [&]() -> task<> { co_await e.wait(); };
        std::function<void()> sets = [&] { e.set(); };
        co_await race.run(waits(), sets);
    }
    CHECK(race.completed + race.cancelled == 1000);
}
