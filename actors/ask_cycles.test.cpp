#include <plait/tests/support/co_test.hpp>

#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <string>

using namespace plait;

namespace {

struct left;

struct right : actor {
    task<> call(ref<left> to);
    task<> call_alone(ref<left> to);
    task<> end(ref<left> of);
};

struct left : actor {
    task<> alone(ref<right> to)
    {
        auto guard = co_await this_actor::exclusive();
        co_await ask<&right::call>(to, self(*this));
    }
    task<> alone_alone(ref<right> to)
    {
        auto guard = co_await this_actor::exclusive();
        co_await this_task::yield();
        co_await ask<&right::call>(to, self(*this));
    }
    task<> itself()
    {
        auto guard = co_await this_actor::exclusive();
        co_await ask<&left::answer>(self(*this));
    }
    task<> ends_itself() { co_await stop(self(*this)); }
    task<> ends_by(ref<right> by) { co_await ask<&right::end>(by, self(*this)); }
    task<> shared(ref<right> to) { co_await ask<&right::call>(to, self(*this)); }
    int answer() { return 1; }
};

task<> right::call(ref<left> to)
{
    co_await ask<&left::answer>(to);
}

task<> right::call_alone(ref<left> to)
{
    auto guard = co_await this_actor::exclusive();
    co_await this_task::yield();
    co_await ask<&left::answer>(to);
}

task<> right::end(ref<left> of)
{
    co_await stop(of);
}

/// What `body` ends with, in a runtime that looks for cycles.
template<class Body>
error failure_of(Body body)
{
    simulation all;
    try {
        all.run(body(all.home()));
    } catch (error const& e) {
        return e;
    }
    return error(errc::invalid_argument, "it has ended well");
}

bool has(error const& e, std::string const& part)
{
    INFO(e.what());
    CHECK(std::string(e.what()).find(part) != std::string::npos);
    return std::string(e.what()).find(part) != std::string::npos;
}

} // namespace

TEST_CASE("an ask that comes back to an actor held by the one who waits for it ends, and the cycle is named")
{
    test::frame_check frames;
    auto const e = failure_of([](runtime& home) -> task<> {
        auto l = home.spawn<left>();
        auto r = home.spawn<right>();
        co_await ask<&left::alone>(l, r);
    });
    CHECK(e.condition() == errc::deadlock);
    CHECK(has(e, "left::alone of "));
    CHECK(has(e, "left #1 ("));
    CHECK(has(e, " waits for "));
    CHECK(has(e, "right::call of "));
    CHECK(has(e, "left::answer of "));
    CHECK(has(e, "ask_cycles.test.cpp:"));
}

TEST_CASE("an actor that asks itself while it holds itself is told so")
{
    auto const e = failure_of([](runtime& home) -> task<> {
        auto l = home.spawn<left>();
        co_await ask<&left::itself>(l);
    });
    CHECK(e.condition() == errc::deadlock);
    CHECK(has(e, "left::itself of "));
}

TEST_CASE("two actors that hold themselves and ask each other are told so, in whatever order they come to it")
{
    int ended = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        simulation_options options;
        options.seed = seed;
        simulation all(options);
        auto body = [&]() -> task<> {
            auto l = all.home().spawn<left>();
            auto r = all.home().spawn<right>();
            auto both = when_all(ask<&left::alone_alone>(l, r), ask<&right::call_alone>(r, l));
            auto const how = co_await as_result(std::move(both));
            CHECK((how.has_value() || how.error() == errc::deadlock || how.error() == errc::cancelled));
            ended += how.has_value() ? 1 : 0;
        };
        try {
            all.run(body());
        } catch (error const& e) {
            CHECK(e.condition() == errc::deadlock);
            CHECK(has(e, " waits for "));
        }
    }
    CHECK(ended < 200);
}

TEST_CASE("asks in a circle without an exclusive section end")
{
    simulation all;
    auto body = [&]() -> task<> {
        auto l = all.home().spawn<left>();
        auto r = all.home().spawn<right>();
        co_await ask<&left::shared>(l, r);
    };
    all.run(body());
}

TEST_CASE("an ask that an exclusive section holds back is answered later when its holder does not wait for it")
{
    struct keeper : actor {
        task<> hold(event* until)
        {
            auto guard = co_await this_actor::exclusive();
            co_await until->wait();
        }
        int answer() { return 1; }
    };
    struct asker : actor {
        task<int> go(ref<keeper> k) { co_return co_await ask<&keeper::answer>(k); }
    };
    simulation all;
    event until;
    auto body = [&]() -> task<> {
        auto k = all.home().spawn<keeper>();
        auto a = all.home().spawn<asker>();
        auto side_by_side = [&](scope& s) -> task<> {
            s.start(ask<&keeper::hold>(k, &until));
            co_await all.home().clock().sleep_for(std::chrono::seconds(1));
            s.start([&]() -> task<> { CHECK(co_await ask<&asker::go>(a, k) == 1); });
            co_await all.home().clock().sleep_for(std::chrono::seconds(1));
            until.set();
        };
        co_await with_scope(side_by_side);
    };
    all.run(body());
}

TEST_CASE("an actor that waits for its own end is told so, also through another actor")
{
    auto const alone = failure_of([](runtime& home) -> task<> {
        auto l = home.spawn<left>();
        co_await ask<&left::ends_itself>(l);
    });
    CHECK(alone.condition() == errc::deadlock);
    CHECK(has(alone, "left::ends_itself waits for the end of its own actor, "));
    auto const through = failure_of([](runtime& home) -> task<> {
        auto l = home.spawn<left>();
        auto r = home.spawn<right>();
        co_await ask<&left::ends_by>(l, r);
    });
    CHECK(through.condition() == errc::deadlock);
    CHECK(has(through, "left::ends_by waits for the end of its own actor, "));
}

namespace {

struct held;

/// Lets go of its section before it asks.
struct polite : actor {
    task<> hold_and_ask(ref<held> other);
    task<> rest()
    {
        for (int i = 0; i < 4; ++i)
            co_await this_task::yield();
    }
};

struct held : actor {
    task<> hold(ref<polite> other)
    {
        auto guard = co_await this_actor::exclusive();
        co_await ask<&polite::rest>(other);
    }
    int answer() { return 1; }
};

task<> polite::hold_and_ask(ref<held> other)
{
    {
        auto guard = co_await this_actor::exclusive();
        co_await this_task::yield();
        co_await this_task::yield();
    }
    co_await ask<&held::answer>(other);
}

} // namespace

TEST_CASE("what a section has let go of is not taken for held by it")
{
    simulation_options options;
    options.threads = 4;
    auto body = [](simulation& all) {
        auto both = [&]() -> task<> {
            auto p = all.home().spawn<polite>();
            auto h = all.home().spawn<held>();
            co_await when_all(ask<&polite::hold_and_ask>(p, h), ask<&held::hold>(h, p));
        };
        all.run(both());
    };
    auto const found = explore_seeds(body, 1, 500, options);
    CHECK_MESSAGE(!found.failure, describe(found));
}
