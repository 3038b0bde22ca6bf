#include <plait/tests/support/co_test.hpp>

#include <atomic>
#include <string>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct blocker : actor {
    /// Keeps the thread until somebody else lets go.
    void block(std::atomic<bool>* end) { end->wait(false); }
    void nothing() {}
    task<> sleep() { co_await home().clock().sleep_until(time_point::max()); }
};

/// A hook that ends the first block that it hears of, and keeps what it was told.
struct listener {
    std::atomic<int> told{0};
    std::atomic<bool> end{false};
    std::string actor;
    duration at_least{};

    void hear(blocked const& b)
    {
        actor = b.actor;
        at_least = b.at_least;
        ++told;
        end = true;
        end.notify_all();
    }
};

} // namespace

TEST_CASE("an actor that blocks its thread is named while it does, once, on a loop and in a pool")
{
    for (unsigned threads : {1U, 2U}) {
        listener heard;
        runtime_options options;
        options.threads = threads;
        options.longest_turn = 5ms;
        options.on_blocked = [&](blocked const& b) { heard.hear(b); };
        runtime home(options);
        auto body = [&]() -> task<> {
            auto pooled = home.spawn<blocker>();
            co_await ask<&blocker::block>(pooled, &heard.end);
            CHECK(heard.told == 1);
            CHECK(heard.actor.find("blocker") != std::string::npos);
            CHECK(heard.at_least >= 5ms);
            heard.end = false;
            auto placed = home.spawn_on<blocker>(home.new_loop("blocked"));
            co_await ask<&blocker::block>(placed, &heard.end);
            CHECK(heard.told == 2);
        };
        home.run(body());
    }
}

TEST_CASE("an actor that waits at an await, or does nothing, is not taken for blocked")
{
    listener heard;
    listener last;
    runtime_options options;
    options.longest_turn = 100ms; // far more than a busy system takes from a thread in the middle of a turn
    std::atomic<bool> ready = false;
    options.on_blocked = [&](blocked const& b) { (ready ? last : heard).hear(b); };
    runtime home(options);
    auto body = [&]() -> task<> {
        auto idle = home.spawn<blocker>();
        co_await tell<&blocker::sleep>(idle);
        co_await ask<&blocker::nothing>(idle);
        // Another thread blocks for long enough that the watchdog would have told of the idle one first.
        auto placed = home.spawn_on<blocker>(home.new_loop("blocked"));
        ready = true;
        co_await ask<&blocker::block>(placed, &last.end);
    };
    home.run(body());
    CHECK(heard.told == 0);
    CHECK(last.told == 1);
}

TEST_CASE("an actor that blocks inside a direct call is named")
{
    listener heard;
    runtime_options options;
    options.longest_turn = 5ms;
    options.on_blocked = [&](blocked const& b) { heard.hear(b); };
    runtime home(options);
    struct outer : actor {
        task<> call(ref<blocker> inner, std::atomic<bool>* end) { co_await ask<&blocker::block>(inner, end); }
    };
    auto body = [&]() -> task<> {
        auto inner = home.spawn<blocker>();
        auto o = home.spawn<outer>();
        co_await ask<&outer::call>(o, inner, &heard.end);
    };
    home.run(body());
    CHECK(heard.told == 1);
    CHECK(heard.actor.find("blocker") != std::string::npos);
}
