#include <plait/tests/support/co_test.hpp>

#include <plait/actors/dump/dump.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/supervisor.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/sync/gate.hpp>
#include <plait/actors/sync/latch.hpp>
#include <plait/actors/sync/semaphore.hpp>
#include <plait/actors/tasks/generator.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

/// "dump.test.cpp:12" for the line of this file that ends with that comment.
std::string at(std::string const& mark)
{
    std::ifstream file(PLAIT_SOURCE_DIR "/actors/dump/dump.test.cpp");
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        if (line.ends_with("// " + mark)) return "dump.test.cpp:" + std::to_string(number);
    }
    return "no line is marked " + mark;
}

struct store : actor {
    explicit store(event& ready)
        : ready_(ready)
    {
    }
    task<int> get(int key)
    {
        co_await ready_.wait(); // waits for the event
        co_return key;
    }

private:
    event& ready_;
};

struct session : actor {
    explicit session(ref<store> data)
        : data_(std::move(data))
    {
    }
    task<int> fetch(int key)
    {
        co_return co_await ask<&store::get>(data_, key); // asks
    }
    task<> serve()
    {
        auto side_by_side = [&](scope& s) -> task<> {
            s.start([this]() -> task<> {
                co_await home().clock().sleep_for(5s); // sleeps
            });
            co_await fetch(1); // fetches
        };
        co_await with_scope(side_by_side);
    }

private:
    ref<store> data_;
};

} // namespace

TEST_CASE("a dump shows every actor, its methods, and each chain of awaits down to what it waits for")
{
    test::frame_check frames;
    std::string text;
    {
        simulation all;
        auto body = [&]() -> task<> {
            auto& home = all.home();
            event ready;
            auto data = home.spawn<store>(ready);
            auto s = home.spawn<session>(data);
            co_await tell<&session::serve>(s);
            co_await home.clock().sleep_for(1s);
            text = co_await dump(home);
            ready.set();
        };
        all.run(body());
    }
    INFO(text);
    auto const has = [&](std::string const& part) { return text.find(part) != text.npos; };
    CHECK(has("at 1.0"));
    CHECK(has("store #1: running, 0 of 256 messages waiting\n"));
    CHECK(has("store::get, called at "));
    CHECK(has(at("waits for the event") + " waits for an event\n"));
    CHECK(has("session #2: running, 0 of 256 messages waiting\n"));
    CHECK(has("session::serve, called at "));
    CHECK(has(at("asks") + " waits for an answer of "));
    CHECK(has(at("sleeps") + " waits for a time: 5."));
    CHECK(has(at("fetches") + "\n"));
    CHECK(has("task #1\n"));
    CHECK(has("dump.cpp:"));
    // A chain goes from the method down: the scope's body, then what it awaits.
    CHECK(text.find(at("fetches") + "\n") < text.find(at("asks") + " waits"));
    CHECK(text.find("store #1") < text.find("session #2"));
}

TEST_CASE("a dump names whatever a coroutine can wait for")
{
    test::frame_check frames;
    std::string text;
    {
        simulation all;
        auto body = [&]() -> task<> {
            auto& home = all.home();
            channel<int> full(0);
            channel<int> empty(1);
            semaphore none(1);
            latch not_yet(1);
            gate inside;
            auto stay = inside.hold();
            event never;
            auto held = co_await none.acquire();
            auto data = home.spawn<store>(never);
            co_await tell<&store::get>(data, 1);
            auto side_by_side = [&](scope& s) -> task<> {
                s.start([&]() -> task<> { co_await full.send(1); });
                s.start([&]() -> task<> { co_await empty.receive(); });
                s.start([&]() -> task<> { auto p = co_await none.acquire(); });
                s.start([&]() -> task<> { co_await not_yet.wait(); });
                s.start([&]() -> task<> { co_await inside.close(); });
                s.start([&]() -> task<> { co_await home.clock().sleep_until(time_point::max()); });
                s.start([&]() -> task<> {
                    auto numbers = [](event& e) -> generator<int> {
                        co_await e.wait();
                        co_yield 1;
                    };
                    auto g = numbers(never);
                    co_await g.next();
                });
                s.start([&]() -> task<> { co_await when_all(ask<&store::get>(data, 7), ask<&store::get>(data, 8)); });
                co_await home.clock().sleep_for(1s);
                text = co_await dump(home);
                s.request_stop();
            };
            co_await with_scope(side_by_side);
            co_await stop(std::move(data)); // its method waits for an event of this frame
        };
        all.run(body());
    }
    INFO(text);
    for (auto const* what :
         {"room in a channel", "a channel's next value", "units of a semaphore", "a latch", "a gate to close",
          "a time that never comes", "an event", "the tasks beside it", "an answer of "}) {
        CAPTURE(what);
        CHECK(text.find(std::string("waits for ") + what) != text.npos);
    }
}

TEST_CASE("a dump of a chain that is deep leaves out its middle")
{
    struct deep {
        static task<> down(int left, event& end)
        {
            if (left == 0) {
                co_await end.wait();
            } else {
                co_await down(left - 1, end);
            }
        }
    };
    simulation all;
    std::string text;
    auto body = [&]() -> task<> {
        event end;
        auto side_by_side = [&](scope& s) -> task<> {
            s.start(deep::down(100'000, end));
            co_await this_task::yield();
            text = co_await dump(all.home());
            end.set();
        };
        co_await with_scope(side_by_side);
    };
    all.run(body());
    CHECK(text.find(" more)\n") != text.npos);
    CHECK(text.find("waits for an event\n") != text.npos);
    CHECK(std::count(text.begin(), text.end(), '\n') < 100);
}

CO_TEST_CASE("a dump says who is busy, and does not wait for them for ever")
{
    struct stubborn : actor {
        void block(std::atomic<bool>* begun, std::atomic<bool>* end)
        {
            *begun = true;
            begun->notify_one();
            end->wait(false);
        }
        void nothing() {}
    };
    auto place = rt.new_loop("stubborn");
    auto s = rt.spawn_on<stubborn>(place);
    std::atomic<bool> begun = false;
    std::atomic<bool> end = false;
    co_await tell<&stubborn::block>(s, &begun, &end);
    begun.wait(false);
    co_await tell<&stubborn::nothing>(s);
    auto const text = co_await dump(rt, 10ms);
    end = true;
    end.notify_one();
    co_await stop(std::move(s));
    INFO(text);
    CHECK(text.find("stubborn #1: busy, 1 messages waiting\n") != text.npos);
    CHECK(text.find("task #1\n") != text.npos);
}

TEST_CASE("dumps at any moment, while actors and tasks come and go on several threads")
{
    test::frame_check frames;
    struct worker : actor {
        task<int> twice(int n)
        {
            co_await this_task::yield();
            co_return 2 * n;
        }
    };
    runtime_options options;
    options.threads = 3;
    runtime home(options);
    std::atomic<bool> done = false;
    std::atomic<int> dumps = 0;
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) {
        others.emplace_back([&] {
            while (!done) {
                auto work = [&]() -> task<int> {
                    auto w = home.spawn<worker>();
                    auto sum = co_await ask<&worker::twice>(w, 1);
                    sum += co_await ask<&worker::twice>(w, 2);
                    co_return sum;
                };
                CHECK(home.run(work()) == 6);
            }
        });
    }
    for (; dumps < 200; ++dumps)
        CHECK(home.run(dump(home)).starts_with("at "));
    done = true;
    for (auto& t : others)
        t.join();
}

namespace {

/// Rings when it goes.
struct bell {
    explicit bell(event& rung)
        : rung(rung)
    {
    }
    bell(bell const&) = delete;
    bell& operator=(bell const&) = delete;
    ~bell() { rung.set(); }
    event& rung;
};

struct sink : actor {
    void take(std::shared_ptr<bell> const&) {}
};

/// Waits for room at an actor that it alone holds, and that ends.
struct flooder : actor {
    task<> flood(event* almost_refused)
    {
        auto to = home().spawn<sink>();
        request_stop(to);
        std::shared_ptr<bell> nothing;
        for (int i = 0; i < 254; ++i)
            co_await tell<&sink::take>(to, nothing);
        auto ringing = std::make_shared<bell>(*almost_refused);
        co_await tell<&sink::take>(to, std::move(ringing));
        co_await tell<&sink::take>(to, nothing);
        auto const outcome = co_await as_result(tell<&sink::take>(std::move(to), nothing));
        static_cast<void>(outcome);
    }
};

} // namespace

TEST_CASE("a dump of a sender whose actor has gone while it waited for room touches nothing of that")
{
    // Found by the sanitizers, where the actor's memory is what is looked at.
    auto const found = explore_seeds(
        [](simulation& s) {
            auto body = [](runtime& home) -> task<> {
                auto who = home.spawn<flooder>();
                event almost_refused;
                auto flood = [&](scope& inside) -> task<> {
                    inside.start(task<>(ask<&flooder::flood>(who, &almost_refused)));
                    co_await almost_refused.wait();
                    auto const text = co_await dump(home, 1s);
                    CHECK(text.find("flooder") != std::string::npos);
                };
                co_await with_scope(flood);
            };
            s.run(body(s.home()));
        },
        1, 500);
    INFO(describe(found));
    CHECK_FALSE(found.failure);
}
