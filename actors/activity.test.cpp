#include <plait/tests/support/co_test.hpp>

#include <plait/actors/simulation/simulation.hpp>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct worker : actor {
    task<> rest() { co_await home().clock().sleep_for(2s); }
    task<> hold()
    {
        auto guard = co_await this_actor::exclusive();
        co_await home().clock().sleep_for(3s);
    }
    void nothing() {}
};

} // namespace

TEST_CASE("with counters every actor knows its messages and how long they waited")
{
    simulation_options options;
    options.counters = true;
    options.slowness = 0;
    simulation all(options);
    auto body = [&]() -> task<> {
        auto a = all.home().spawn<worker>();
        auto b = all.home().spawn<worker>();
        co_await tell<&worker::hold>(a);
        for (int i = 0; i < 4; ++i)
            co_await tell<&worker::nothing>(a);
        co_await ask<&worker::rest>(b);
        co_await ask<&worker::nothing>(a);
        auto const now = all.home().activity();
        REQUIRE(now.size() == 2);
        CHECK(now[0].actor.ends_with("worker #1"));
        CHECK(now[0].messages == 6);
        // Four were held from 0 s to 3 s, and the last one from 2 s on.
        CHECK(now[0].queued == 13s);
        CHECK(now[1].messages == 1);
        CHECK(now[1].queued == 0s);
    };
    all.run(body());
}

TEST_CASE("with counters the time in turns is that of the runtime's clock")
{
    struct busy : actor {
        explicit busy(manual_clock* c)
            : clock_(c)
        {
        }
        void work() { clock_->advance(5ms); }

    private:
        manual_clock* clock_;
    };
    manual_clock time;
    runtime_options options;
    options.counters = true;
    options.clock = &time;
    runtime home(options);
    auto body = [&]() -> task<> {
        auto w = home.spawn<busy>(&time);
        for (int i = 0; i < 3; ++i)
            co_await ask<&busy::work>(w);
        auto other = home.spawn<busy>(&time);
        co_await ask<&busy::work>(other);
        auto const now = home.activity();
        REQUIRE(now.size() == 2);
        CHECK(now[0].ran == 15ms);
        CHECK(now[0].messages == 3);
    };
    home.run(body());
}

CO_TEST_CASE("without counters nothing is counted")
{
    auto w = rt.spawn<worker>();
    co_await ask<&worker::nothing>(w);
    CHECK(rt.activity().empty());
}
