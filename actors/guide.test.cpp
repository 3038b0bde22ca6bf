// The programs of docs/actors.md, between marks; the last test compares the two.

#include <cctype>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <asio/write.hpp>
#include <doctest/doctest.h>

#include <plait/actors/actors.hpp>
#include <plait/actors/asio.hpp>
#include <plait/tests/support/co_test.hpp>

using namespace plait;
using namespace std::chrono_literals;

namespace {

// [task]
task<int> answer()
{
    co_return 42;
}

task<int> twice()
{
    int a = co_await answer();
    int b = co_await answer();
    co_return a + b;
}
// [task]

task<std::string> hello()
{
    co_return "hello";
}

// [actor]
class account : public actor {
public:
    explicit account(long balance)
        : balance_(balance)
    {
    }

    long balance() const { return balance_; }
    void deposit(long amount) { balance_ += amount; }

    task<bool> transfer(ref<account> to, long amount)
    {
        auto alone = co_await this_actor::exclusive(); // the check still holds after the await
        if (balance_ < amount) co_return false;
        co_await ask<&account::deposit>(to, amount);
        balance_ -= amount;
        co_return true;
    }

private:
    long balance_;
};
// [actor]

// [generator]
generator<std::string> words(std::string text)
{
    std::string word;
    for (char c : text) {
        if (!std::isspace(static_cast<unsigned char>(c))) {
            word += c;
        } else if (!word.empty()) {
            co_yield word;
            word.clear();
        }
    }
    if (!word.empty()) co_yield word;
}
// [generator]

// [waiting]
task<std::string> first_line(asio::ip::tcp::socket& socket)
{
    std::string line;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(line), '\n', use_task);
    co_return line;
}
// [waiting]

} // namespace

TEST_CASE("the guide: a task")
{
    runtime rt;
    int n = rt.run(twice());
    CHECK(n == 84);
}

CO_TEST_CASE("the guide: an actor")
{
    // [asking]
    auto mine = rt.spawn<account>(100);
    auto yours = rt.spawn<account>(0);

    bool done = co_await ask<&account::transfer>(mine, yours, 30); // waits for the result
    co_await tell<&account::deposit>(yours, 5);                    // waits only for room
    long sum = co_await ask<&account::balance>(yours);

    co_await stop(mine); // its mailbox closes, its methods end, it is destroyed
    auto late = co_await as_result(ask<&account::balance>(mine));
    // late.error() == errc::receiver_gone
    // [asking]
    CHECK(done);
    CHECK(sum == 35);
    CHECK(late.error() == errc::receiver_gone);
}

CO_TEST_CASE("the guide: a scope, a channel and a generator")
{
    // [scope]
    channel<std::string> queue(2); // a full channel suspends its sender
    std::vector<std::string> seen;

    auto produce = [&]() -> task<> {
        auto g = words("strands of one plait");
        for (;;) {
            auto word = co_await g.next();
            if (!word) break;
            co_await queue.send(*word);
        }
        queue.close(); // what was sent can still be received
    };
    auto body = [&](scope& s) -> task<> {
        s.start(produce); // runs beside the body
        for (;;) {
            auto word = co_await queue.receive();
            if (!word) break;
            seen.push_back(*word);
        }
    };
    co_await with_scope(body); // returns when both have ended
    // [scope]
    CHECK(seen.size() == 4);
}

CO_TEST_CASE("the guide: stopping")
{
    // [stop]
    auto slow = [&]() -> task<> { co_await rt.clock().sleep_for(1h); };
    auto body = [&](scope& s) -> task<> {
        s.start(slow);
        co_await rt.clock().sleep_for(1ms);
        s.request_stop(); // the sleep throws errc::cancelled, which a scope that was asked to stop takes as its end
    };
    co_await with_scope(body);
    // [stop]
}

CO_TEST_CASE("the guide: several at once")
{
    auto yours = rt.spawn<account>(5);
    auto mine = rt.spawn<account>(7);
    // [all]
    auto [a, b, text] = co_await when_all(ask<&account::balance>(mine), twice(), hello());
    // [all]
    CHECK(a == 7);
    CHECK(b == 84);
    CHECK(text == "hello");

    event never;
    auto waits = [&]() -> task<> { co_await never.wait(); };
    int n = 0;
    // [any]
    auto first = co_await when_any(waits(), twice());
    if (first.index() == 1) n = std::get<1>(first); // waits() was stopped, and has ended
    // [any]
    CHECK(n == 84);

    channel<int> urgent(1);
    channel<int> usual(1);
    // [select]
    std::vector<int> taken;
    auto take = [&](channel<int>& from) -> task<> {
        auto value = co_await from.receive();
        if (value) taken.push_back(*value); // in here, for the other may have got one too
    };
    co_await usual.send(1);
    auto which = co_await when_any(take(urgent), take(usual)); // the one that lost has taken nothing, or stored it
    // [select]
    CHECK(which.index() == 1);
    CHECK(taken == std::vector{1});

    // [timeout]
    auto sum = co_await as_result(timeout(rt.clock(), 20ms, ask<&account::balance>(mine)));
    auto late = co_await as_result(timeout(rt.clock(), 1ms, waits()));
    // late.error() == errc::deadline_exceeded, and == std::errc::timed_out
    // [timeout]
    CHECK((sum.has_value() || sum.error() == std::errc::timed_out));
    CHECK(late.error() == errc::deadline_exceeded);
    CHECK(late.error() == std::errc::timed_out);

    auto body = [&](scope& s) -> task<> {
        // [shield]
        auto pays_back = [&]() -> task<> {
            auto wait = co_await as_result(never.wait());       // a stop ends the wait,
            co_await shield(ask<&account::deposit>(yours, 30)); // is not seen here,
            std::move(wait).value();                            // and goes on
        };
        // [shield]
        s.start(pays_back);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    auto balance = co_await ask<&account::balance>(yours);
    CHECK(balance == 35);
}

CO_TEST_CASE("the guide: an event")
{
    // [event]
    event ready;
    auto waits = [&]() -> task<> { co_await ready.wait(); };
    auto sets = [&]() -> task<> {
        ready.set();
        co_return;
    };
    co_await when_all(waits(), waits(), sets());
    // [event]
    CHECK(ready.is_set());
}

CO_TEST_CASE("the guide: a semaphore")
{
    // [semaphore]
    semaphore budget(64 * 1024); // bytes under way
    auto sends = [&](std::size_t bytes) -> task<> {
        auto permit = co_await budget.acquire(bytes);
        co_await this_task::yield(); // the work
    }; // the bytes are free again
    co_await when_all(sends(40'000), sends(40'000), sends(10));
    // [semaphore]
    CHECK(budget.available() == budget.capacity());
}

CO_TEST_CASE("the guide: a latch")
{
    // [latch]
    latch loaded(2);
    auto loads = [&]() -> task<> {
        co_await this_task::yield(); // the work
        loaded.count_down();
    };
    auto serves = [&]() -> task<> { co_await loaded.wait(); };
    co_await when_all(serves(), loads(), loads());
    // [latch]
    CHECK(loaded.try_wait());
}

CO_TEST_CASE("the guide: a gate")
{
    // [gate]
    gate open;
    auto request = [&]() -> task<bool> {
        if (!open.try_enter()) co_return false; // or hold(), which throws errc::closed
        co_await this_task::yield();            // the work
        open.leave();
        co_return true;
    };
    auto shuts_down = [&]() -> task<> { co_await open.close(); }; // nobody enters any more; returns when all have left
    auto [served, nothing, refused] = co_await when_all(request(), shuts_down(), request());
    // [gate]
    CHECK(served);
    CHECK(!refused);
}

TEST_CASE("the guide: Asio")
{
    runtime rt;
    // [future]
    std::future<int> n = async_start(rt, twice(), asio::use_future);
    // [future]
    CHECK(n.get() == 84);
}

TEST_CASE("the guide: waiting for Asio")
{
    asio::io_context io;
    using asio::ip::tcp;
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    tcp::socket client(io);
    client.connect(acceptor.local_endpoint());
    auto server = acceptor.accept();
    asio::write(client, asio::buffer("hello\n", 6));
    asio_executor exec(io.get_executor());
    auto line = async_start(exec, first_line(server), asio::use_future);
    io.run();
    CHECK(line.get() == "hello\n");
}

CO_TEST_CASE("the guide: supervision")
{
    // [supervision]
    supervisor_options options;
    options.strategy = restarts::one_for_one;
    options.most = 3;     // restarts in ...
    options.window = 10s; // ... any ten seconds; one more is the supervisor's own failure
    options.first_delay = 50ms;

    auto bank = rt.spawn<supervisor>(options);
    auto mine = supervisor::spawn<account>(bank, 100); // made again from 100 when a method that it was told has thrown
    auto vault = supervisor::spawn<supervisor>(bank);  // supervisors have supervisors
    auto gold = supervisor::spawn<account>(vault, 1'000'000);

    co_await stop(bank); // children first, youngest first
    co_await gone(weak_ref(gold));
    // [supervision]
    CHECK(mine.stopped());
    CHECK(vault.stopped());
}

CO_TEST_CASE("the guide: an ordered end, seen from inside")
{
    auto mine = rt.spawn<account>(100);
    co_await tell<&account::deposit>(mine, 1);
    // [dump]
    std::string text = co_await dump(rt);
    // [dump]
    CHECK(text.find("account #1") != std::string::npos);
    // [shutdown]
    auto how = co_await drain(mine, rt.clock(), 2s); // takes nothing more, runs what waits, and ends
    if (how.dropped > 0) std::cerr << how.actor << " dropped " << how.dropped << " messages\n";

    shutdown_limits limits;
    limits.draining = 10s;
    limits.stopping = 5s;
    auto trouble = co_await shutdown(rt, limits); // whoever did not end well
    for (auto const& one : trouble)
        std::cerr << one.actor << (one.gone ? " dropped messages\n" : " has not ended\n");
    // [shutdown]
    CHECK(how.dropped == 0);
    CHECK(rt.actors() == 0);
}

TEST_CASE("the guide: what blocks a thread")
{
    // [blocked]
    runtime_options options;
    options.longest_turn = 50ms;
    options.on_blocked = [](blocked const& b) { std::cerr << b.actor << " blocks its thread\n"; };
    options.counters = true; // what each actor does is counted: runtime::activity()
    runtime home(options);
    // [blocked]
    auto mine = home.spawn<account>(100);
    CHECK(home.run(task<long>(ask<&account::balance>(mine))) == 100);
    REQUIRE(home.activity().size() == 1);
    CHECK(home.activity()[0].messages == 1);
}

TEST_CASE("the guide: a runtime in an io_context")
{
    // [context]
    asio::io_context context;
    std::optional<asio_runtime> here(context); // its pool, its loops and its clock are handlers of the context
    auto mine = here->home().spawn<account>(100);

    int both = here->run(twice()); // runs the context until the task has ended

    auto serves = [&]() -> asio::awaitable<long> { // a coroutine of Asio's asks an actor
        co_return co_await async_start(here->home(), ask<&account::balance>(mine), asio::use_awaitable);
    };
    // [context]
    // [ending]
    auto ends = [&]() -> asio::awaitable<void> {
        co_await here->async_end(asio::use_awaitable); // tasks, then actors, as the destructor does
        here.reset();                                  // nothing is left to wait for, so also within the context
    };
    // [ending]
    CHECK(both == 84);
    auto balance = asio::co_spawn(context, serves(), asio::use_future);
    context.run();
    CHECK(balance.get() == 100);
    context.restart();
    auto ended = asio::co_spawn(context, ends(), asio::use_future);
    context.run();
    ended.get();
    CHECK(!here);
}

TEST_CASE("the guide: simulation")
{
    // [simulation]
    auto transfers = [](simulation& all) {
        auto body = [&all]() -> task<> {
            auto mine = all.home().spawn<account>(100);
            auto yours = all.home().spawn<account>(0);
            co_await when_all(ask<&account::transfer>(mine, yours, 30), ask<&account::transfer>(mine, yours, 80));
            long left = co_await ask<&account::balance>(mine);
            if (left < 0) throw std::runtime_error("overdrawn");
        };
        all.run(body());
    };
    auto hunted = explore_seeds(transfers, 1, 1000); // hunted.seed is the one that failed, if hunted.failure is set
    auto proved = explore_all(transfers, 1'000'000); // proved.complete: there is no other order
    // [simulation]
    CHECK(!hunted.failure);
    CHECK(hunted.runs == 1000);
    CHECK(proved.complete);
    CHECK(!proved.failure);
}

TEST_CASE("the guide: faults")
{
    // [faults]
    simulation_options rough;
    rough.late_timers = 20;  // one timer in twenty fires late
    rough.held_places = 200; // one step in so many holds back a loop or an actor, while time passes for the others
    rough.longest_hold = 50ms;
    auto survives = [](simulation& all) {
        auto body = [&all]() -> task<> {
            auto bank = all.home().spawn<supervisor>();
            auto mine = supervisor::spawn<account>(bank, 100);
            auto crashes = all.sometimes(1000, [&] { crash(mine); }); // as if a method that it was told had thrown
            for (int i = 0; i < 10; ++i) {
                long balance = co_await ask<&account::balance>(mine);
                if (balance != 100) throw std::runtime_error("what is it that the owner sees?");
            }
            co_await stop(bank);
        };
        all.run(body());
    };
    auto found = explore_seeds(survives, 1, 100, rough);
    auto words = describe(found); // "seed 17 failed: ... again: explore_seeds(body, 17, 1)", or that none did
    // [faults]
    CHECK(words == "no seed of 100 failed");
}

TEST_CASE("the guide shows the programs that are compiled here")
{
    auto read = [](char const* path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        return text.str();
    };
    auto guide = read(PLAIT_SOURCE_DIR "/docs/actors.md");
    std::stringstream source(read(PLAIT_SOURCE_DIR "/actors/guide.test.cpp"));
    int programs = 0;
    std::string mark;
    std::string program;
    std::size_t indent = 0;
    for (std::string line; std::getline(source, line);) {
        auto text = line.find_first_not_of(' ');
        bool is_mark = text != line.npos && line.compare(text, 4, "// [") == 0;
        if (!is_mark) {
            if (!mark.empty()) program += line.substr(std::min(indent, line.size())) + '\n';
        } else if (mark.empty()) {
            mark = line.substr(text);
            indent = text;
            program.clear();
        } else {
            CHECK_MESSAGE(guide.find("```cpp\n" + program + "```") != guide.npos, mark);
            mark.clear();
            ++programs;
        }
    }
    CHECK(programs == 25);
}
