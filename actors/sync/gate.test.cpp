#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>

#include <plait/actors/sync/gate.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <atomic>
#include <memory>

using namespace plait;
using test::place;

CO_TEST_CASE("closing a gate waits until all have left")
{
    gate g;
    bool closed = false;
    auto closes = [&]() -> task<> {
        co_await g.close();
        closed = true;
    };
    auto body = [&](scope& s) -> task<> {
        auto a = g.hold();
        g.enter();
        CHECK(g.inside() == 2);
        s.start(closes);
        co_await this_task::yield();
        CHECK(g.closed());
        a.release();
        co_await this_task::yield();
        CHECK(!closed);
        g.leave();
        co_await this_task::yield();
        CHECK(closed);
    };
    co_await with_scope(body);
    co_await g.close(); // again
    CHECK(g.inside() == 0);
}

CO_TEST_CASE("nobody enters a closed gate")
{
    gate g;
    auto inside = g.hold();
    auto waits = g.close();
    CHECK(!g.try_enter());
    CHECK_THROWS_AS(g.enter(), error);
    errc refused{};
    try {
        static_cast<void>(g.hold());
    } catch (error const& e) {
        refused = e.condition();
    }
    CHECK(refused == errc::closed);
    CHECK(g.inside() == 1);
    inside.release();
    co_await waits;
}

CO_TEST_CASE("a stay can be moved, and ends once")
{
    gate g;
    auto a = g.hold();
    gate::holder b;
    b = std::move(a);
    CHECK(!a);
    CHECK(b);
    a.release();
    CHECK(g.inside() == 1);
    b.release();
    b.release();
    CHECK(g.inside() == 0);
    co_await g.close();
}

CO_TEST_CASE("a cancelled close leaves the gate closed")
{
    gate g;
    auto inside = g.hold();
    auto closes = [&]() -> task<> {
        auto outcome = co_await as_result(g.close());
        CHECK(outcome.error() == errc::cancelled);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(closes);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(g.closed());
    CHECK(!g.try_enter());
    inside.release();
    co_await g.close();
}

CO_TEST_CASE("whoever waited for a gate to close may destroy it")
{
    auto one = rt.spawn_on<place>(rt.new_loop("one"));
    auto other = rt.spawn_on<place>(rt.new_loop("other"));
    int entered = 0;
    for (int round = 0; round < 1000; ++round) {
        auto g = std::make_unique<gate>();
        int a = 0;
        int b = 0;
        auto* p = g.get();
        g->enter();
        g->enter();
        std::function<task<>()> first = [&a, p]() -> task<> {
            a = p->try_enter() ? 1 : 0;
            if (a == 1) p->leave();
            p->leave();
            co_return;
        };
        std::function<task<>()> second = [&b, p]() -> task<> {
            b = 2;
            p->leave();
            co_return;
        };
        co_await tell<&place::run>(one, first);
        co_await tell<&place::run>(other, second);
        co_await g->close();
        g.reset();
        CHECK(b == 2);
        entered += a;
    }
    CHECK(entered <= 1000);
}

CO_TEST_CASE("a stop that races with the last to leave resumes once")
{
    test::stop_race race(rt);
    for (int round = 0; round < 1000; ++round) {
        gate g;
        g.enter();
        auto closes = [&]() -> task<> { co_await g.close(); };
        std::function<void()> leaves = [&] { g.leave(); };
        co_await race.run(closes(), leaves);
        CHECK(g.inside() == 0);
    }
    CHECK(race.completed + race.cancelled == 1000);
}
