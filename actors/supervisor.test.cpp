#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/seeds.hpp>

#include <plait/actors/gone.hpp>
#include <plait/actors/simulation/crash.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/supervisor.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/timeout.hpp>

#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

/// What the objects of a test have lived through.
struct journal {
    int made = 0;
    int destroyed = 0;
    std::vector<std::string> log;
};

struct worker : actor {
    worker(std::shared_ptr<journal> j, std::string name)
        : book(std::move(j))
        , name(std::move(name))
    {
        ++book->made;
        book->log.push_back("+" + this->name);
    }
    ~worker()
    {
        ++book->destroyed;
        book->log.push_back("-" + name);
    }

    int add(int n) { return sum += n; }
    void fail(std::string why) { throw std::runtime_error(why); }
    task<> fail_later()
    {
        co_await this_task::yield();
        throw std::runtime_error("later");
    }
    int ask_and_fail() { throw std::runtime_error("asked"); }
    task<> wait_for_ever()
    {
        event never;
        co_await never.wait();
    }

    std::shared_ptr<journal> book;
    std::string name;
    int sum = 0;
};

struct keeper : worker {
    keeper(std::shared_ptr<journal> j, int from = 0)
        : worker(std::move(j), "keeper")
    {
        sum = from;
    }
    int hand_over() { return sum; }
};

struct stubborn : actor {
    explicit stubborn(std::shared_ptr<int> attempts)
    {
        if (++*attempts > 1) throw std::runtime_error("not again");
    }
    void fail() { throw std::runtime_error("first"); }
};

struct tidy : actor {
    explicit tidy(std::shared_ptr<journal> j)
        : book(std::move(j))
    {
    }
    ~tidy() { book->log.push_back("gone"); }
    task<> stopping()
    {
        book->log.push_back("stopping");
        co_await home().clock().sleep_for(1s);
        book->log.push_back("stopped");
    }
    void nothing() {}
    std::shared_ptr<journal> book;
};

} // namespace

TEST_CASE("a child that fails starts again in its place, and goes on with what its mailbox kept")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto w = supervisor::spawn<worker>(top, book, "w");
        auto sum = co_await ask<&worker::add>(w, 5);
        CHECK(sum == 5);
        co_await tell<&worker::fail>(w, "now");
        sum = co_await ask<&worker::add>(w, 7);
        CHECK(sum == 7); // a new object: the 5 is gone
        co_await tell<&worker::fail_later>(w);
        co_await tell<&worker::add>(w, 1);
        co_await all.home().clock().sleep_for(1s);
        sum = co_await ask<&worker::add>(w, 0);
        CHECK((sum == 0 || sum == 1)); // the old or the new object may have been told
        co_await stop(top);
        CHECK(w.stopped());
    };
    all.run(body());
    CHECK(book->made == 3);
    CHECK(book->destroyed == 3);
}

TEST_CASE("what an ask throws is the asker's, and no failure of the actor")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto w = supervisor::spawn<worker>(top, book, "w");
        co_await ask<&worker::add>(w, 5);
        auto outcome = co_await as_result(ask<&worker::ask_and_fail>(w));
        CHECK(outcome.failure());
        auto sum = co_await ask<&worker::add>(w, 0);
        CHECK(sum == 5);
        co_await stop(top);
    };
    all.run(body());
    CHECK(book->made == 1);
}

TEST_CASE("an ask that runs in an actor that fails ends")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto w = supervisor::spawn<worker>(top, book, "w");
        auto failing = [&]() -> task<> {
            co_await this_task::yield();
            co_await tell<&worker::fail>(w, "now");
        };
        auto asking = [&]() -> task<> {
            auto outcome = co_await as_result(ask<&worker::wait_for_ever>(w));
            CHECK(outcome.error() == errc::cancelled);
        };
        co_await when_all(asking(), failing());
        co_await stop(top);
    };
    all.run(body());
}

TEST_CASE("what an object hands over is there in the next")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto k = supervisor::spawn<keeper>(top, book);
        co_await ask<&keeper::add>(k, 5);
        co_await tell<&keeper::fail>(k, "now");
        auto sum = co_await ask<&keeper::add>(k, 1);
        CHECK(sum == 6);
        co_await stop(top);
    };
    all.run(body());
    CHECK(book->made == 2);
    CHECK(book->destroyed == 2);
}

TEST_CASE("one for all: the others start again too, in the order in which they were spawned")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        supervisor_options options;
        options.strategy = restarts::one_for_all;
        auto top = all.home().spawn<supervisor>(options);
        auto a = supervisor::spawn<worker>(top, book, "a");
        auto b = supervisor::spawn<worker>(top, book, "b");
        co_await ask<&worker::add>(a, 1);
        co_await ask<&worker::add>(b, 1);
        co_await tell<&worker::fail>(b, "now");
        co_await all.home().clock().sleep_for(1s);
        auto sum = co_await ask<&worker::add>(a, 0);
        CHECK(sum == 0);
        sum = co_await ask<&worker::add>(b, 0);
        CHECK(sum == 0);
        co_await stop(top);
    };
    all.run(body());
    CHECK(book->made == 4);
    CHECK(book->destroyed == 4);
    CHECK(std::vector(book->log.end() - 2, book->log.end()) == std::vector<std::string>{"-b", "-a"});
}

TEST_CASE(
    "more restarts than the limit in a window are the supervisor's own failure, and the root's handler hears of it")
{
    std::vector<std::string> heard;
    simulation_options told;
    told.on_unhandled = [&](failure const& f) {
        try {
            std::rethrow_exception(f.exception);
        } catch (std::exception const& e) {
            heard.push_back(std::string(f.actor.substr(f.actor.rfind(':') + 1)) + ": " + e.what());
        }
    };
    told.slowness = 0; // what happens at a time is counted
    simulation all(told);
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        supervisor_options options;
        options.most = 2;
        options.window = 10s;
        auto top = all.home().spawn<supervisor>(options);
        auto w = supervisor::spawn<worker>(top, book, "w");
        for (int i = 0; i < 6; ++i) { // two in each window are fine
            co_await tell<&worker::fail>(w, "slow");
            co_await all.home().clock().sleep_for(6s);
        }
        CHECK(heard.empty());
        CHECK(book->made == 7);
        co_await all.home().clock().sleep_for(20s);
        for (int i = 0; i < 3; ++i) {
            auto outcome = co_await as_result(ask<&worker::add>(w, 1));
            CHECK(outcome.has_value());
            co_await tell<&worker::fail>(w, "fast " + std::to_string(i));
        }
        co_await gone(weak_ref(top));
        CHECK(w.stopped());
    };
    all.run(body());
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].find("worker: fast ") == 0);
    CHECK(book->destroyed == book->made);
}

TEST_CASE("a supervisor that fails is restarted by its own, with its children and their handles")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        supervisor_options strict;
        strict.most = 0;
        auto middle = supervisor::spawn<supervisor>(top, strict);
        auto a = supervisor::spawn<worker>(middle, book, "a");
        auto b = supervisor::spawn<worker>(middle, book, "b");
        co_await ask<&worker::add>(a, 1);
        co_await ask<&worker::add>(b, 1);
        co_await tell<&worker::fail>(a, "now");
        co_await all.home().clock().sleep_for(1s);
        auto left = co_await ask<&worker::add>(a, 2);
        auto right = co_await ask<&worker::add>(b, 2);
        CHECK(left == 2);
        CHECK(right == 2); // its supervisor started again, so it did
        co_await stop(top);
        CHECK(middle.stopped());
        CHECK(a.stopped());
    };
    all.run(body());
    CHECK(book->made == 4);
    CHECK(book->destroyed == 4);
}

TEST_CASE("a constructor that throws on a restart is a failure too, and climbs")
{
    int heard = 0;
    simulation_options told;
    told.on_unhandled = [&](failure const& f) {
        ++heard;
        CHECK(f.method == "its constructor");
    };
    simulation all(told);
    auto attempts = std::make_shared<int>(0);
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto s = supervisor::spawn<stubborn>(top, attempts);
        co_await tell<&stubborn::fail>(s);
        co_await gone(weak_ref(s));
        co_await gone(weak_ref(top));
    };
    all.run(body());
    CHECK(heard == 1);
    CHECK(*attempts == 4); // the first, and three restarts
}

TEST_CASE("an object that could not be made is not destroyed when the next attempt is made")
{
    struct fragile : worker {
        fragile(std::shared_ptr<journal> j, std::shared_ptr<int> attempts)
            : worker(std::move(j), "f")
            , heap(std::make_unique<int>(*attempts))
        {
            if (++*attempts == 2 || *attempts == 3) throw std::runtime_error("not yet");
        }
        int attempt() const { return *heap; }
        std::unique_ptr<int> heap;
    };
    simulation all;
    auto book = std::make_shared<journal>();
    auto attempts = std::make_shared<int>(0);
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto f = supervisor::spawn<fragile>(top, book, attempts);
        co_await tell<&fragile::fail>(f, "now");
        auto heap = co_await ask<&fragile::attempt>(f);
        CHECK(heap == 3);
        co_await stop(top);
    };
    all.run(body());
    CHECK(*attempts == 4);
    CHECK(book->made == 4);
    CHECK(book->destroyed == 4);
}

TEST_CASE("what a supervisor's child hands over is lost with a constructor that throws, and the rest goes on")
{
    struct heir : worker {
        heir(std::shared_ptr<journal> j, std::shared_ptr<int> attempts, int from = -1)
            : worker(std::move(j), "h")
        {
            sum = from;
            if (++*attempts == 2) throw std::runtime_error("not yet");
        }
        int hand_over() { return sum; }
    };
    simulation all;
    auto book = std::make_shared<journal>();
    auto attempts = std::make_shared<int>(0);
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto h = supervisor::spawn<heir>(top, book, attempts);
        co_await ask<&heir::add>(h, 5);
        co_await tell<&heir::fail>(h, "now");
        auto sum = co_await ask<&heir::add>(h, 0);
        CHECK(sum == -1);
        co_await stop(top);
    };
    all.run(body());
    CHECK(book->destroyed == book->made);
}

TEST_CASE("a restart waits, twice as long each time, less what chance takes off")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        supervisor_options options;
        options.most = 10;
        options.window = 1h;
        options.first_delay = 1s;
        options.longest_delay = 5s;
        options.jitter = 0.5;
        auto top = all.home().spawn<supervisor>(options);
        auto w = supervisor::spawn<worker>(top, book, "w");
        for (auto longest : {1s, 2s, 4s, 5s, 5s}) {
            auto before = all.now();
            co_await tell<&worker::fail>(w, "again");
            co_await ask<&worker::add>(w, 1);
            auto took = all.now() - before;
            CHECK(took <= longest);
            CHECK(took >= longest / 2);
        }
        co_await stop(top);
    };
    all.run(body());
}

TEST_CASE("options of a supervisor that make no sense are refused")
{
    simulation all;
    supervisor_options options;
    options.jitter = 2;
    CHECK_THROWS_AS(all.home().spawn<supervisor>(options), error);
    options = {};
    options.window = 0s;
    CHECK_THROWS_AS(all.home().spawn<supervisor>(options), error);
    options = {};
    options.first_delay = -1s;
    CHECK_THROWS_AS(all.home().spawn<supervisor>(options), error);
}

TEST_CASE("a failure of a child that is stopped before its methods have ended is heard of all the same")
{
    struct lingering : worker {
        using worker::worker;
        task<> linger()
        {
            auto nap = [this]() -> task<> { co_await home().clock().sleep_for(1s); };
            co_await shield(nap());
        }
    };
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        supervisor_options options;
        options.strategy = restarts::one_for_all;
        auto top = all.home().spawn<supervisor>(options);
        auto a = supervisor::spawn<lingering>(top, book, "a");
        auto b = supervisor::spawn<worker>(top, book, "b");
        co_await ask<&worker::add>(b, 1);
        co_await tell<&lingering::linger>(a);
        co_await tell<&worker::fail>(a, "now");
        co_await all.home().clock().sleep_for(100ms);
        co_await stop(a);
        co_await all.home().clock().sleep_for(1s);
        auto sum = co_await ask<&worker::add>(b, 0);
        CHECK(sum == 0); // it depends on the one that failed
        co_await stop(top);
    };
    all.run(body());
    CHECK(book->made == 3);
    CHECK(book->destroyed == 3);
}

TEST_CASE("children stop before their supervisor, youngest first, and are waited for")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto top = all.home().spawn<supervisor>();
        auto a = supervisor::spawn<worker>(top, book, "a");
        auto b = supervisor::spawn<tidy>(top, book);
        auto c = supervisor::spawn<worker>(top, book, "c");
        co_await ask<&worker::add>(a, 1);
        co_await ask<&tidy::nothing>(b);
        co_await ask<&worker::add>(c, 1);
        top = {}; // its last handle
        co_await gone(weak_ref(a));
    };
    all.run(body());
    CHECK(std::vector(book->log.begin() + 2, book->log.end()) ==
          std::vector<std::string>{"-c", "stopping", "stopped", "gone", "-a"});
}

TEST_CASE("an actor's stopping() runs once, after its methods, and with a runtime that goes too")
{
    auto book = std::make_shared<journal>();
    {
        simulation all;
        auto t = all.home().spawn<tidy>(book);
        auto body = [&]() -> task<> { co_await ask<&tidy::nothing>(t); };
        all.run(body());
        t = {};
    }
    CHECK(book->log == std::vector<std::string>{"stopping", "stopped", "gone"});
    book->log.clear();
    simulation again;
    auto body = [&]() -> task<> {
        auto t = again.home().spawn<tidy>(book);
        co_await ask<&tidy::nothing>(t);
        request_stop(t);
        request_stop(t);
        co_await stop(t);
        CHECK(book->log == std::vector<std::string>{"stopping", "stopped", "gone"});
    };
    again.run(body());
}

TEST_CASE("gone() ends when the actor does, at once for one that has gone, and a stop ends the wait")
{
    simulation all;
    auto book = std::make_shared<journal>();
    auto body = [&]() -> task<> {
        auto w = all.home().spawn<worker>(book, "w");
        weak_ref<worker> watched(w);
        CHECK_THROWS_AS(co_await timeout(all.home().clock(), 1s, gone(watched)), error);
        auto stopping = [&]() -> task<> {
            co_await all.home().clock().sleep_for(1s);
            co_await stop(std::move(w));
        };
        co_await when_all(gone(watched), stopping());
        CHECK(book->destroyed == 1);
        co_await gone(watched);
        co_await gone(weak_ref<worker>());
    };
    all.run(body());
}

namespace {

/// A system of actors that fail, are asked, told, stopped and given up on at random, on a machine that is slow, late
/// and crashes them; what must hold is counted.
struct storm {
    static constexpr std::size_t members = 3;

    struct ledger {
        std::map<int, int> runs; ///< of each message
        int made = 0;
        int destroyed = 0;
        int moment = 0; ///< orders what follows
        int last_failure = 0;
        std::vector<int> made_at = std::vector<int>(members);
        std::vector<int> failed_at = std::vector<int>(members);
    };

    struct member : actor {
        member(std::shared_ptr<ledger> b, std::size_t n)
            : book(std::move(b))
            , number(n)
        {
            ++book->made;
            book->made_at[number] = ++book->moment;
        }
        ~member() { ++book->destroyed; }
        task<int> compute(int id)
        {
            ++book->runs[id];
            co_await this_task::yield();
            co_await home().clock().sleep_for(std::chrono::milliseconds(id % 7));
            co_return id;
        }
        void note(int id)
        {
            ++book->runs[id];
            if (id % 5 != 0) return;
            book->failed_at[number] = book->last_failure = ++book->moment;
            throw std::runtime_error("struck");
        }
        void look() {}
        std::shared_ptr<ledger> book;
        std::size_t number;
    };

    static void require(bool holds, char const* otherwise)
    {
        if (!holds) throw std::runtime_error(otherwise);
    }

    static void run(simulation& all)
    {
        test::frame_check frames;
        auto book = std::make_shared<ledger>();
        int asked = 0;
        int ended = 0;
        auto body = [&]() -> task<> {
            auto& home = all.home();
            std::mt19937_64 random(home.random_seed());
            supervisor_options options;
            options.strategy = random() % 2 == 0 ? restarts::one_for_one : restarts::one_for_all;
            options.most = 1000;
            options.first_delay = std::chrono::milliseconds(random() % 3);
            auto top = home.spawn<supervisor>(options);
            std::vector<ref<member>> children;
            for (std::size_t i = 0; i < members; ++i)
                children.push_back(supervisor::spawn<member>(top, book, i));
            std::vector<std::vector<int>> told(members);
            auto client = [&](int first) -> task<> {
                for (int id = first; id < first + 12; ++id) {
                    auto const to = random() % members;
                    if (random() % 3 == 0) {
                        auto outcome = co_await as_result(tell<&member::note>(children[to], id));
                        if (outcome) told[to].push_back(id);
                        require(outcome || outcome.error() == errc::receiver_gone, "a tell failed");
                        continue;
                    }
                    ++asked;
                    auto outcome = co_await as_result(timeout(home.clock(), std::chrono::milliseconds(1 + random() % 8),
                                                              ask<&member::compute>(children[to], id)));
                    ++ended;
                    require(!outcome || (outcome.value() == id && book->runs[id] == 1), "another's answer");
                }
            };
            auto striker = [&]() -> task<> {
                co_await home.clock().sleep_for(std::chrono::milliseconds(random() % 40));
                if (random() % 2 == 0) co_await stop(children[random() % members]);
            };
            {
                auto const fault = all.sometimes(100, [&] { crash(children[all.choose(members)]); });
                co_await when_all(client(100), client(200), client(300), striker());
            }
            for (auto const& c : children) {
                // It comes after all that was told before, whatever failed there.
                auto outcome = co_await as_result(ask<&member::look>(c));
                require(outcome.has_value() == !c.stopped(), "a child was not started again");
            }
            co_await home.clock().sleep_for(1min);
            for (std::size_t i = 0; i < members; ++i) {
                if (children[i].stopped()) continue;
                for (int id : told[i])
                    require(book->runs[id] == 1, "a message was lost");
                bool const all_of_them = options.strategy == restarts::one_for_all;
                require(book->made_at[i] > (all_of_them ? book->last_failure : book->failed_at[i]),
                        "a failure was not followed by a restart");
            }
            co_await stop(top);
            for (auto const& c : children)
                require(c.stopped(), "a child outlived its supervisor");
        };
        all.run(body());
        require(asked == ended, "an ask did not end");
        require(book->made == book->destroyed, "an object was left");
        for (auto [id, times] : book->runs)
            require(times <= 1, "a message ran twice");
    }
};

} // namespace

TEST_CASE(
    "in a storm of failures, restarts, stops and timeouts every ask ends once, no message is lost, nothing is left")
{
    simulation_options options;
    options.late_timers = 10;
    options.held_places = 100;
    options.longest_hold = 20ms;
    options.on_unhandled = [](failure const&) {}; // a child that is struck while its supervisor stops
    test::check_seeds(&storm::run, 1000, options);
}
