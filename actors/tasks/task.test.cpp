#include <plait/tests/support/co_test.hpp>

#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

using namespace plait;

namespace {

task<int> number(int n)
{
    co_return n;
}

task<int> fails()
{
    co_await this_task::yield();
    throw std::runtime_error("no number");
}

task<long> count_down(int depth)
{
    if (depth == 0) co_return 0;
    auto below = co_await count_down(depth - 1);
    co_return below + 1;
}

/// As `count_down`, but everything ends only after a suspension at the bottom.
task<long> count_down_slowly(int depth)
{
    if (depth == 0) {
        co_await this_task::yield();
        co_return 0;
    }
    auto below = co_await count_down_slowly(depth - 1);
    co_return below + 1;
}

/// Counts its instances.
struct counted {
    explicit counted(int& alive)
        : alive(&alive)
    {
        ++alive;
    }
    counted(counted const& other)
        : alive(other.alive)
    {
        ++*alive;
    }
    ~counted() { --*alive; }
    int* alive;
};

task<int> holds(counted c)
{
    co_await this_task::yield();
    co_return *c.alive;
}

template<int Size>
task<> of_size()
{
    std::array<char, Size> bytes{};
    co_await this_task::yield();
    CHECK(bytes[Size - 1] == 0);
}

} // namespace

CO_TEST_CASE("a million awaits of tasks that end at once do not grow the stack")
{
    long sum = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        sum += co_await number(1);
    }
    CHECK(sum == 1'000'000);
}

CO_TEST_CASE("tasks may nest far deeper than the stack")
{
    auto depth = co_await count_down(200'000);
    CHECK(depth == 200'000);
}

CO_TEST_CASE("a deep chain that ends after a suspension unwinds without the stack")
{
    auto depth = co_await count_down_slowly(200'000);
    CHECK(depth == 200'000);
}

CO_TEST_CASE("a task's exception reaches its awaiter")
{
    std::string what;
    try {
        co_await fails();
    } catch (std::runtime_error const& e) {
        what = e.what();
    }
    CHECK(what == "no number");
}

CO_TEST_CASE("as_result gives the exception as a value")
{
    auto good = co_await as_result(number(3));
    CHECK(good);
    CHECK(good.value() == 3);
    CHECK(!good.error());
    auto bad = co_await as_result(fails());
    CHECK(!bad);
    CHECK(bad.error() == errc::engine_failed);
    CHECK_THROWS_AS(bad.value(), std::runtime_error);
}

CO_TEST_CASE("a task awaited twice says so")
{
    auto t = number(1);
    auto first = co_await std::move(t);
    CHECK(first == 1);
    auto second = co_await as_result(std::move(t));
    CHECK(second.error() == errc::invalid_argument);
    bool thrown = false;
    try {
        co_await std::move(t);
    } catch (error const& e) {
        thrown = e.condition() == errc::invalid_argument;
    }
    CHECK(thrown);
}

TEST_CASE("a task that is never awaited frees its frame and its parameters")
{
    test::frame_check frames;
    int alive = 0;
    {
        auto t = holds(counted(alive));
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
}

CO_TEST_CASE("a parameter dies with its task, once")
{
    int alive = 0;
    auto t = holds(counted(alive));
    auto seen = co_await std::move(t);
    CHECK(seen == 1);
    CHECK(alive == 0);
}

CO_TEST_CASE("a reference and a move-only value pass through tasks")
{
    int x = 5;
    auto to_reference = [](int& r) -> task<int&> { co_return r; };
    auto& same = co_await to_reference(x);
    CHECK(&same == &x);
    auto to_pointer = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(9); };
    auto p = co_await to_pointer();
    CHECK(*p == 9);
}

CO_TEST_CASE("a capturing lambda's captures live as long as its task")
{
    int alive = 0;
    task<int> t;
    {
        auto body = [c = counted(alive)]() -> task<int> {
            co_await this_task::yield();
            co_return *c.alive;
        };
        t = co_invoke(std::move(body));
    }
    auto seen = co_await std::move(t);
    CHECK(seen == 1);
    CHECK(alive == 0);
}

CO_TEST_CASE("yield lets others run")
{
    std::string order;
    auto say = [&](char c) -> task<> {
        order += c;
        co_await this_task::yield();
        order += c;
    };
    co_await when_all(say('a'), say('b'));
    CHECK(order == "abab");
}

CO_TEST_CASE("a task runs on its awaiter's executor under its awaiter's stop")
{
    auto* mine = co_await this_task::executor();
    auto child = []() -> task<executor*> { co_return co_await this_task::executor(); };
    auto* its = co_await child();
    CHECK(mine == its);
    CHECK(mine != nullptr);
}

TEST_CASE("a stop of the run reaches the innermost wait")
{
    test::frame_check frames;
    runtime rt;
    stop_source source;
    auto waits = []() -> task<> {
        event never;
        co_await never.wait();
    };
    auto body = [&]() -> task<> {
        source.request_stop();
        co_await waits();
    };
    auto outcome = [&] {
        try {
            rt.run(body(), source.token());
        } catch (error const& e) {
            return e.condition();
        }
        return errc::io;
    };
    CHECK(outcome() == errc::cancelled);
}

TEST_CASE("shield lets clean-up finish after a stop")
{
    test::frame_check frames;
    runtime rt;
    stop_source source;
    source.request_stop();
    bool cleaned = false;
    event done;
    auto clean_up = [&]() -> task<> {
        co_await done.wait();
        cleaned = true;
    };
    auto body = [&]() -> task<> {
        done.set();
        co_await shield(clean_up());
    };
    rt.run(body(), source.token());
    CHECK(cleaned);
}

namespace {

struct ledger : actor {
    task<> write()
    {
        co_await this_task::yield();
        ++entries_;
    }
    int entries() { return entries_; }
    int entries_ = 0;
};

} // namespace

CO_TEST_CASE("a shielded ask is sent and waited for after a stop, and the next await is cancelled")
{
    auto book = rt.spawn<ledger>();
    event go_on;
    std::string trace;
    auto works = [&]() -> task<> {
        auto clean_up = [&]() -> task<> {
            co_await go_on.wait(); // the stop comes while it waits
            co_await ask<&ledger::write>(book);
            trace += "cleaned ";
        };
        co_await shield(clean_up());
        co_await shield(ask<&ledger::write>(book));
        auto next = co_await as_result(go_on.wait());
        trace += next.error() == errc::cancelled ? "cancelled" : "went on";
    };
    auto body = [&](scope& s) -> task<> {
        s.start(works);
        co_await this_task::yield();
        s.request_stop();
        co_await this_task::yield();
        CHECK(trace.empty());
        go_on.set();
    };
    co_await with_scope(body);
    CHECK(trace == "cleaned cancelled");
    auto entries = co_await ask<&ledger::entries>(book);
    CHECK(entries == 2);
}

CO_TEST_CASE("frames of every size are recycled")
{
    for (int i = 0; i < 100; ++i) {
        co_await of_size<8>();
        co_await of_size<120>();
        co_await of_size<700>();
        co_await of_size<5000>();
    }
}

CO_TEST_CASE("every frame knows where it awaits and for whom")
{
    struct look {
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<detail::task_promise<void>> h) noexcept
        {
            inner = h.promise().where();
            outer = h.promise().awaiter() ? h.promise().awaiter()->where() : site{};
            return false;
        }
        void await_resume() const noexcept {}
        site& inner;
        site& outer;
    };
    site inner;
    site outer;
    auto child = [&]() -> task<> {
        look l{inner, outer};
        co_await l;
    };
    auto line = here().line + 1;
    co_await child();
    CHECK(outer.line == line);
    CHECK(inner.line == line - 3);
    CHECK(std::string(inner.file).ends_with("task.test.cpp"));
}

CO_TEST_CASE("as_result gives the outcome of an operation without throwing")
{
    channel<std::unique_ptr<int>> c(1);
    auto sent = co_await as_result(c.send(std::make_unique<int>(7)));
    CHECK(sent.has_value());
    auto received = co_await as_result(c.receive());
    REQUIRE(received.has_value());
    CHECK(**received.value() == 7);
    c.close();
    auto late = co_await as_result(c.send(std::make_unique<int>(8)));
    CHECK(late.error() == errc::closed);
    auto yielded = co_await as_result(this_task::yield());
    CHECK(yielded.has_value());
    auto slept = co_await as_result(rt.clock().sleep_for(duration(1)));
    CHECK(slept.has_value());

    event never;
    errc end{};
    auto waits = [&]() -> task<> {
        auto outcome = co_await as_result(never.wait());
        end = static_cast<errc>(outcome.error().value());
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(end == errc::cancelled);
}

namespace {

/// Fails before it has suspended anybody.
struct refuses_to_suspend {
    bool await_ready() const noexcept { return false; }
    template<class P>
    bool await_suspend(std::coroutine_handle<P>)
    {
        throw std::runtime_error("not now");
    }
    void await_resume() const noexcept {}
};

} // namespace

CO_TEST_CASE("as_result keeps what an operation throws when it begins")
{
    auto outcome = co_await as_result(refuses_to_suspend());
    CHECK(outcome.error() == errc::engine_failed);
}
