#include <plait/tests/support/co_test.hpp>

#include <plait/actors/shutdown.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/supervisor.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <stdexcept>
#include <string>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

/// Each message takes a second of its time.
struct slow : actor {
    explicit slow(std::vector<int>* done)
        : done_(done)
    {
    }
    task<> work(int n)
    {
        auto guard = co_await this_actor::exclusive();
        co_await home().clock().sleep_for(1s);
        done_->push_back(n);
    }
    task<> stubborn(event* end) { co_await shield(wait(end)); }

private:
    static task<> wait(event* end) { co_await end->wait(); }
    std::vector<int>* done_;
};

struct front : actor {
    front(ref<slow> b, std::vector<int>* log)
        : back(std::move(b))
        , log_(log)
    {
    }
    task<> work(int n)
    {
        co_await ask<&slow::work>(back, n);
        log_->push_back(-n);
    }
    ref<slow> back;

private:
    std::vector<int>* log_;
};

} // namespace

TEST_CASE("a drained actor runs what waits in its mailbox, takes nothing more, and is gone then")
{
    std::vector<int> done;
    simulation all;
    auto body = [&]() -> task<> {
        auto s = all.home().spawn<slow>(&done);
        for (int i = 0; i < 5; ++i)
            co_await tell<&slow::work>(s, i);
        auto side_by_side = [&](scope& both) -> task<> {
            both.start([&]() -> task<> {
                auto const how = co_await drain(s, all.home().clock(), 1min);
                CHECK(how.gone);
                CHECK(how.dropped == 0);
                CHECK(how.actor.ends_with("slow #1"));
            });
            co_await all.home().clock().sleep_for(500ms);
            CHECK(s.stopped());
            CHECK_FALSE(try_tell<&slow::work>(s, 6));
            auto const refused = co_await as_result(ask<&slow::work>(s, 7));
            CHECK(refused.error() == errc::receiver_gone);
        };
        co_await with_scope(side_by_side);
    };
    all.run(body());
    CHECK(done == std::vector{0, 1, 2, 3, 4});
    CHECK(all.home().actors() == 0);
}

TEST_CASE("senders that wait for room in a mailbox that is drained are served")
{
    std::vector<int> done;
    simulation all;
    auto body = [&]() -> task<> {
        auto s = all.home().spawn<slow>(&done);
        auto side_by_side = [&](scope& senders) -> task<> {
            for (int i = 0; i < 300; ++i)
                senders.start(tell<&slow::work>(s, i));
            co_await all.home().clock().sleep_for(100ms);
            auto const how = co_await drain(s, all.home().clock(), 1h);
            CHECK(how.dropped == 0);
        };
        co_await with_scope(side_by_side);
    };
    all.run(body());
    CHECK(done.size() == 300);
}

TEST_CASE("a drain that takes too long drops what waits, and says how much")
{
    std::vector<int> done;
    simulation all;
    auto body = [&]() -> task<> {
        auto s = all.home().spawn<slow>(&done);
        for (int i = 0; i < 10; ++i)
            co_await tell<&slow::work>(s, i);
        auto const how = co_await drain(s, all.home().clock(), 3500ms);
        CHECK(how.gone);
        CHECK(how.dropped == 10 - done.size() - 1); // one was at work, and was asked to stop
    };
    all.run(body());
    CHECK(done.size() == 3);
}

TEST_CASE("an idle actor and one that has gone are drained at once")
{
    std::vector<int> done;
    simulation all;
    auto body = [&]() -> task<> {
        auto s = all.home().spawn<slow>(&done);
        CHECK((co_await drain(s, all.home().clock(), 1h)).gone);
        CHECK((co_await drain(s, all.home().clock(), 1h)).gone);
        CHECK(all.now() < time_point(1s));
    };
    all.run(body());
}

TEST_CASE("a shutdown drains users before what they use, so nothing is lost")
{
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        std::vector<int> done;
        simulation_options options;
        options.seed = seed;
        simulation all(options);
        auto body = [&]() -> task<> {
            auto back = all.home().spawn<slow>(&done);
            auto user = all.home().spawn<front>(back, &done);
            for (int i = 1; i <= 3; ++i)
                co_await tell<&front::work>(user, i);
            auto const trouble = co_await shutdown(all.home());
            CHECK(trouble.empty());
        };
        all.run(body());
        CHECK(done.size() == 6);
        CHECK(all.home().actors() == 0);
    }
}

TEST_CASE("a shutdown ends children before their supervisor, and does not restart them")
{
    std::vector<std::string> gone;
    std::vector<int> done;
    simulation all;
    auto subscription = all.home().on_lifecycle([&](lifecycle_event const& e) {
        if (e.what == lifecycle_event::kind::gone) gone.emplace_back(e.actor);
        CHECK(e.what != lifecycle_event::kind::restarted);
    });
    auto body = [&]() -> task<> {
        auto above = all.home().spawn<supervisor>();
        auto child = supervisor::spawn<slow>(above, &done);
        co_await tell<&slow::work>(child, 1);
        auto const trouble = co_await shutdown(all.home());
        CHECK(trouble.empty());
    };
    all.run(body());
    REQUIRE(gone.size() == 2);
    CHECK(gone[0].ends_with("slow"));
    CHECK(gone[1].ends_with("supervisor"));
    CHECK(done == std::vector{1});
}

TEST_CASE("a shutdown names a method that does not end, and goes on without it")
{
    test::frame_check frames;
    std::vector<int> done;
    event end;
    simulation all;
    auto body = [&]() -> task<> {
        auto other = all.home().spawn<slow>(&done);
        auto s = all.home().spawn<slow>(&done);
        co_await tell<&slow::stubborn>(s, &end);
        for (int i = 0; i < 3; ++i)
            co_await tell<&slow::work>(other, i);
        shutdown_limits const limits{10s, 5s};
        auto const trouble = co_await shutdown(all.home(), limits);
        REQUIRE(trouble.size() == 2);
        CHECK(trouble[0].actor.ends_with("slow #2"));
        CHECK_FALSE(trouble[0].gone);
        CHECK(trouble[1].actor.ends_with("slow #1"));
        CHECK(all.now() <= time_point(16s));
        end.set();
    };
    all.run(body());
}

CO_TEST_CASE("a shutdown on threads ends everything")
{
    std::vector<int> done;
    struct adder : actor {
        explicit adder(std::atomic<int>* sum)
            : sum_(sum)
        {
        }
        void add(int n) { *sum_ += n; }

    private:
        std::atomic<int>* sum_;
    };
    std::atomic<int> sum = 0;
    std::vector<ref<adder>> all;
    for (int i = 0; i < 20; ++i)
        all.push_back(rt.spawn<adder>(&sum));
    for (int i = 0; i < 1000; ++i)
        co_await tell<&adder::add>(all[static_cast<std::size_t>(i) % all.size()], 1);
    auto const trouble = co_await shutdown(rt);
    CHECK(trouble.empty());
    CHECK(sum == 1000);
    CHECK(rt.actors() == 0);
}

TEST_CASE("a supervised actor that fails while it is drained does not go on with the object that has failed")
{
    struct fragile : actor {
        explicit fragile(int* r)
            : ran(r)
        {
        }
        task<> fail()
        {
            co_await home().clock().sleep_for(1s);
            throw std::runtime_error("no");
        }
        void work() { ++*ran; }
        int* ran;
    };
    int ran = 0;
    int failures = 0;
    simulation_options options;
    options.on_unhandled = [&](failure const&) { ++failures; };
    simulation all(options);
    auto body = [&]() -> task<> {
        auto above = all.home().spawn<supervisor>();
        auto f = supervisor::spawn<fragile>(above, &ran);
        co_await tell<&fragile::fail>(f);
        auto const how = co_await drain(f, all.home().clock(), 1h);
        CHECK(how.gone);
        CHECK(all.now() < time_point(1h));
    };
    all.run(body());
    CHECK(failures == 1);
}

CO_TEST_CASE("draining no actor is an error")
{
    auto const how = co_await as_result(drain(ref<slow>(), rt.clock(), 1s));
    CHECK(how.error() == errc::invalid_argument);
}
