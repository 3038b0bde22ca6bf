#include <plait/tests/support/co_test.hpp>

#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/supervisor.hpp>

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace plait;

namespace {

struct worker : actor {
    void fail() { throw std::runtime_error("no"); }
    void work() {}
};

char const* word(lifecycle_event::kind what)
{
    using kind = lifecycle_event::kind;
    switch (what) {
    case kind::spawned:
        return "spawned";
    case kind::failed:
        return "failed";
    case kind::restarted:
        return "restarted";
    case kind::stopping:
        return "stopping";
    case kind::gone:
        return "gone";
    }
    return "";
}

} // namespace

TEST_CASE("a subscriber hears what happens to an actor, in order, with the cause of a failure")
{
    std::vector<std::string> heard;
    simulation all;
    auto subscription = all.home().on_lifecycle([&](lifecycle_event const& e) {
        if (e.actor.find("worker") == e.actor.npos) return;
        CHECK(e.id > 0);
        heard.emplace_back(word(e.what));
        if (e.what == lifecycle_event::kind::failed) {
            REQUIRE(e.cause);
            CHECK(e.cause->method.find("fail") != std::string_view::npos);
            CHECK_THROWS_AS(std::rethrow_exception(e.cause->exception), std::runtime_error);
        }
    });
    auto body = [&]() -> task<> {
        auto above = all.home().spawn<supervisor>();
        auto w = supervisor::spawn<worker>(above);
        co_await ask<&worker::work>(w);
        co_await tell<&worker::fail>(w);
        co_await ask<&worker::work>(w);
        co_await stop(w);
        co_await stop(above);
    };
    all.run(body());
    CHECK(heard == std::vector<std::string>{"spawned", "failed", "restarted", "stopping", "gone"});
}

TEST_CASE("a subscription that has ended hears nothing, and ends from within its own hook or after the runtime")
{
    int heard = 0;
    lifecycle_subscription late;
    {
        runtime home;
        late = home.on_lifecycle([](lifecycle_event const&) {});
        {
            auto early = home.on_lifecycle([&](lifecycle_event const&) { ++heard; });
        }
        lifecycle_subscription self;
        std::string const kept(100, 'x');
        self = home.on_lifecycle([&heard, &self, kept](lifecycle_event const&) {
            self = {};
            heard += kept.size() == 100 ? 1 : 0; // what the hook has captured lives as long as it runs
        });
        auto a = home.spawn<worker>();
        auto b = home.spawn<worker>();
        CHECK(heard == 1);
    }
}

TEST_CASE("a hook may spawn an actor, which it hears of as well")
{
    std::vector<std::string> heard;
    runtime home;
    ref<worker> second;
    auto subscription = home.on_lifecycle([&](lifecycle_event const& e) {
        heard.push_back(std::to_string(e.id) + " " + word(e.what));
        if (e.id == 1 && e.what == lifecycle_event::kind::spawned) second = home.spawn<worker>();
    });
    auto first = home.spawn<worker>();
    CHECK(heard == std::vector<std::string>{"1 spawned", "2 spawned"});
}

TEST_CASE("subscriptions come and go while actors do on other threads")
{
    runtime_options options;
    options.threads = 2;
    runtime home(options);
    std::atomic<bool> done = false;
    std::thread spawning([&] {
        while (!done) {
            auto w = home.spawn<worker>();
        }
    });
    std::mutex mutex; // of what the hooks capture
    for (int i = 0; i < 500; ++i) {
        int spawned = 0;
        int gone = 0;
        auto subscription = home.on_lifecycle([&](lifecycle_event const& e) {
            std::lock_guard lock(mutex);
            if (e.what == lifecycle_event::kind::spawned) ++spawned;
            if (e.what == lifecycle_event::kind::gone) ++gone;
        });
        auto one = home.spawn<worker>();
        std::lock_guard lock(mutex);
        CHECK(spawned > 0);
    }
    done = true;
    spawning.join();
}
