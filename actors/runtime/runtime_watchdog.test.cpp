#include <plait/tests/support/co_test.hpp>

#include <atomic>
#include <string>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct blocker : actor {
    /// Keeps the thread until somebody else lets go.
    void block(std::atomic<bool>* end) { end->wait(false); }
};

/// Waits, and is asked something meanwhile.
struct sleeper : actor {
    void nothing() {}
    task<> sleep() { co_await home().clock().sleep_until(time_point::max()); }
};

/// More than a busy system takes from a thread in the middle of a short turn.
constexpr duration limit = 50ms;

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
        options.longest_turn = limit;
        options.on_blocked = [&](blocked const& b) { heard.hear(b); };
        runtime home(options);
        auto body = [&]() -> task<> {
            auto pooled = home.spawn<blocker>();
            co_await ask<&blocker::block>(pooled, &heard.end);
            CHECK(heard.told == 1);
            CHECK(heard.actor.find("blocker") != std::string::npos);
            CHECK(heard.at_least >= limit);
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
    std::atomic<bool> sleeper_named = false;
    runtime_options options;
    options.longest_turn = limit;
    options.on_blocked = [&](blocked const& b) {
        if (b.actor.find("sleeper") != b.actor.npos) {
            sleeper_named = true;
        } else {
            heard.hear(b);
        }
    };
    runtime home(options);
    auto body = [&]() -> task<> {
        auto idle = home.spawn<sleeper>();
        co_await tell<&sleeper::sleep>(idle);
        co_await ask<&sleeper::nothing>(idle);
        // Another thread blocks until the watchdog tells of it; of the idle one it would have told before.
        auto placed = home.spawn_on<blocker>(home.new_loop("blocked"));
        co_await ask<&blocker::block>(placed, &heard.end);
    };
    home.run(body());
    CHECK(heard.told == 1);
    CHECK_FALSE(sleeper_named);
}

TEST_CASE("an actor that blocks inside a direct call is named")
{
    listener heard;
    runtime_options options;
    options.longest_turn = limit;
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
