#include <plait/tests/support/call_work.hpp>
#include <plait/tests/support/co_test.hpp>

#include <plait/actors/asio.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/timeout.hpp>
#include <plait/actors/tasks/when_all.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct counter : actor {
    int add(int n) { return sum += n; }
    task<int> add_slowly(int n)
    {
        auto before = sum;
        co_await this_task::yield();
        sum = before + n; // only right while nobody else is let in
        co_return sum;
    }
    task<> waits()
    {
        event never;
        co_await never.wait();
    }
    int sum = 0;
};

#if defined(__linux__)
long threads()
{
    std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
}
#endif

/// An io_context that some threads run, until the end of its life.
class running_context {
public:
    explicit running_context(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i)
            threads_.emplace_back([this] { context.run(); });
    }
    ~running_context()
    {
        guard_.reset();
        for (auto& t : threads_)
            t.join();
    }
    asio::io_context context;

private:
    asio::executor_work_guard<asio::io_context::executor_type> guard_{context.get_executor()};
    std::vector<std::thread> threads_;
};

task<> wait_forever()
{
    event never;
    co_await never.wait();
}

task<> sleep_for(runtime& home, duration d)
{
    co_await home.clock().sleep_for(d);
}

task<> wait_for(asio::steady_timer& timer)
{
    co_await timer.async_wait(use_task);
}

/// Runs `f` in a process of its own and says what ended it: the text of the exception that nobody caught, or "".
std::string ends_by(std::function<void()> const& f)
{
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    std::fflush(nullptr); // or the child might say it again
    auto const child = ::fork();
    if (child == 0) {
        static int said = ends[1];
        std::set_terminate([] {
            try {
                std::rethrow_exception(std::current_exception());
            } catch (std::exception const& e) {
                auto const written = ::write(said, e.what(), std::strlen(e.what()));
                ::_exit(written > 0 ? 1 : 2);
            }
        });
        f();
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string text;
    char c = 0;
    while (::read(ends[0], &c, 1) == 1)
        text += c;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return text;
}

} // namespace

#if defined(__linux__)
TEST_CASE("actors, loops, timers and started tasks run in an io_context without a thread of plait's own")
{
    test::frame_check frames;
    auto const before = threads();
    {
        asio::io_context context;
        asio_runtime rt(context);
        CHECK(!rt.home().has_threads());
        auto body = [&]() -> task<int> {
            auto& clock = rt.home().clock();
            auto pooled = rt.home().spawn<counter>();
            auto apart = rt.home().spawn_on<counter>(rt.home().new_loop("apart"));
            co_await clock.sleep_for(1ms);
            auto late = co_await as_result(timeout(clock, 1ms, ask<&counter::waits>(apart)));
            CHECK(late.error() == errc::deadline_exceeded);
            auto [a, b] = co_await when_all(ask<&counter::add>(pooled, 1), ask<&counter::add_slowly>(apart, 2));
            CHECK(threads() == before);
            co_return a + b;
        };
        CHECK(rt.run(body()) == 3);
        int seen = 0;
        async_start(rt.home(), body(), [&](std::error_code, int n) { seen = n; });
        context.run();
        CHECK(seen == 3);
        CHECK(threads() == before);
    }
    CHECK(threads() == before);
}
#endif

TEST_CASE("run gives its own context back ready to run, or stopped if that is how it was")
{
    asio::io_context context;
    asio_runtime rt(context);
    auto r = rt.home().spawn<counter>();
    CHECK(rt.run(task<int>(ask<&counter::add>(r, 1))) == 1);
    CHECK(!context.stopped());
    bool ran = false;
    asio::post(context, [&] { ran = true; });
    context.run();
    CHECK(ran);
    CHECK(context.stopped());
    CHECK(rt.run(task<int>(ask<&counter::add>(r, 1))) == 2);
    CHECK(context.stopped());
}

TEST_CASE("the context's other handlers run while a thread is in run")
{
    asio::io_context context;
    asio_runtime rt(context);
    event set;
    asio::steady_timer timer(context, 1ms);
    timer.async_wait([&](std::error_code) { set.set(); });
    auto waits = [&]() -> task<> { co_await set.wait(); };
    rt.run(waits());
    CHECK(set.is_set());
}

TEST_CASE("run within a handler of its context is refused and does not wait for itself")
{
    asio::io_context context;
    asio_runtime rt(context);
    errc seen{};
    auto tries = [&] {
        try {
            rt.run(wait_forever());
        } catch (error const& e) {
            seen = e.condition();
        }
    };
    asio::post(context, tries);
    context.run();
    CHECK(seen == errc::invalid_argument);
    context.restart();

    asio::thread_pool pool(1);
    asio_runtime others(asio::make_strand(pool.get_executor()));
    std::promise<errc> promise;
    asio::post(pool, [&] {
        try {
            others.run(wait_forever());
        } catch (error const& e) {
            promise.set_value(e.condition());
        }
    });
    CHECK(promise.get_future().get() == errc::invalid_argument);
}

TEST_CASE("a runtime that goes when its context has ended stops what is left there, youngest first")
{
    struct named : actor {
        named(std::vector<int>& gone, int n)
            : gone_(gone)
            , number_(n)
        {
        }
        ~named() { gone_.push_back(number_); }
        task<> waits()
        {
            event never;
            co_await never.wait();
        }

    private:
        std::vector<int>& gone_;
        int number_;
    };
    test::frame_check frames;
    std::vector<int> gone;
    std::vector<std::error_code> answers;
    asio::io_context context;
    std::vector<ref<named>> all;
    asio::steady_timer timer(context, 24h);
    {
        asio_runtime rt(context);
        for (int i = 0; i < 3; ++i)
            all.push_back(rt.home().spawn_on<named>(rt.home().new_loop("a loop"), std::ref(gone), i));
        async_start(rt.home(), ask<&named::waits>(all[1]), [&](std::error_code code) { answers.push_back(code); });
        async_start(rt.home(), wait_for(timer), [&](std::error_code code) { answers.push_back(code); });
        asio::post(context, [&] { context.stop(); });
        context.run();
        CHECK(answers.empty());
        CHECK(context.stopped());
    }
    CHECK(gone == std::vector{2, 1, 0});
    REQUIRE(answers.size() == 2);
    CHECK(answers[0] == errc::cancelled);
    CHECK(answers[1] == errc::cancelled);
    CHECK(context.stopped());
}

TEST_CASE("a handle may outlive the runtime and its context")
{
    auto context = std::make_unique<asio::io_context>();
    auto rt = std::make_unique<asio_runtime>(*context);
    auto r = rt->home().spawn<counter>();
    auto weak = weak_ref(r);
    CHECK(rt->run(task<int>(ask<&counter::add>(r, 1))) == 1);
    rt.reset();
    context.reset();
    CHECK(!try_tell<&counter::add>(r, 1));
}

TEST_CASE("a runtime that is destroyed within its context ends the program with a word of advice")
{
    auto within = [] {
        asio::io_context context;
        auto rt = std::make_unique<asio_runtime>(context);
        auto r = rt->home().spawn<counter>();
        asio::post(context, [&] { rt.reset(); });
        context.run();
    };
    CHECK(ends_by(within).find("async_end") != std::string::npos);
}

TEST_CASE("a runtime whose context nobody runs any more ends the program instead of waiting for ever")
{
    auto alone = [] {
        asio::io_context context;
        asio_runtime rt(context.get_executor());
        auto r = rt.home().spawn<counter>();
        context.run();
    };
    CHECK(ends_by(alone).find("nobody runs") != std::string::npos);
}

TEST_CASE("a runtime ends within its context, step by step, and the context goes on without it")
{
    test::frame_check frames;
    asio::io_context context;
    std::optional<asio_runtime> rt(context);
    std::error_code stopped;
    bool after = false;
    auto body = [&]() -> asio::awaitable<void> {
        auto& home = rt->home();
        auto a = home.spawn<counter>();
        auto b = home.spawn_on<counter>(home.new_loop("a loop"));
        async_start(home, ask<&counter::waits>(b), [&](std::error_code code) { stopped = code; });
        auto sum = co_await async_start(home, ask<&counter::add>(a, 3), asio::use_awaitable);
        CHECK(sum == 3);
        a = {};
        co_await rt->async_end(asio::use_awaitable);
        CHECK(stopped == errc::cancelled);
        rt.reset();
        asio::steady_timer timer(context, 1ms);
        co_await timer.async_wait(asio::use_awaitable);
        after = true;
    };
    asio::co_spawn(context, body(), asio::detached);
    context.run();
    CHECK(after);
}

TEST_CASE("an empty runtime ends within its context as well")
{
    asio::io_context context;
    asio_runtime rt(context);
    bool inside = true;
    bool ended = false;
    rt.async_end([&] {
        CHECK(!inside);
        ended = true;
    });
    inside = false;
    context.run();
    CHECK(ended);
}

TEST_CASE("a busy device leaves a turn to the context's other handlers between any two pieces of its work")
{
    struct device : event_loop::poller {
        std::vector<char>* order = nullptr;
        int left = 5;
        bool poll() override
        {
            if (left == 0) return false;
            --left;
            order->push_back('d');
            return true;
        }
    };
    asio::io_context context;
    asio_executor place(context.get_executor());
    std::vector<char> order;
    device d;
    d.order = &order;
    place.attach(d);
    std::function<void()> handler = [&] {
        order.push_back('h');
        if (d.left > 0) asio::post(context, handler);
    };
    asio::post(context, handler);
    context.run();
    CHECK(std::string(order.begin(), order.end()) == "dhdhdhdhdh");
    place.detach(d);
}

TEST_CASE("a device is served although works never end, and asked again after a post when it slept")
{
    struct device : event_loop::poller {
        int queued = 3;
        bool poll() override
        {
            if (queued == 0) return false;
            --queued;
            return true;
        }
    };
    asio::io_context context;
    asio_executor place(context.get_executor());
    device d;
    place.attach(d);
    test::call_work endless([&] {
        if (d.queued > 0) place.post(endless);
    });
    place.post(endless);
    context.run();
    CHECK(d.queued == 0);
    context.restart();
    d.queued = 2;
    place.post(endless);
    context.run();
    CHECK(d.queued == 0);
    place.detach(d);
}

TEST_CASE("actors and loops stay serial when several threads run the context")
{
    test::frame_check frames;
    running_context io(3);
    asio_runtime rt(io.context.get_executor());
    auto pooled = rt.home().spawn<counter>();
    auto apart = rt.home().spawn_on<counter>(rt.home().new_loop("apart"));
    auto asks = [&]() -> task<> {
        for (int i = 0; i < 500; ++i) {
            co_await ask<&counter::add>(pooled, 1);
            co_await ask<&counter::add>(apart, 1);
        }
    };
    std::vector<std::future<void>> all;
    for (int i = 0; i < 4; ++i)
        all.push_back(async_start(rt.home(), asks(), asio::use_future));
    rt.run(asks());
    for (auto& one : all)
        one.get();
    CHECK(rt.run(task<int>(ask<&counter::add>(pooled, 0))) == 2500);
    CHECK(rt.run(task<int>(ask<&counter::add>(apart, 0))) == 2500);
}

TEST_CASE("a thread that runs the context for its task is one of those that run it")
{
    test::frame_check frames;
    running_context io(2);
    asio_runtime rt(io.context);
    auto r = rt.home().spawn<counter>();
    for (int i = 1; i <= 200; ++i)
        CHECK(rt.run(task<int>(ask<&counter::add>(r, 1))) == i);
}

TEST_CASE("runtimes come and go in a thread pool, whatever still sleeps in them")
{
    test::frame_check frames;
    asio::thread_pool pool(3);
    for (int i = 0; i < 50; ++i) {
        asio_runtime rt(pool.get_executor());
        for (int k = 0; k < 5; ++k)
            async_start(rt.home(), sleep_for(rt.home(), k * 20us), [](std::error_code) {});
        async_start(rt.home(), sleep_for(rt.home(), 24h), [](std::error_code) {});
        auto r = rt.home().spawn_on<counter>(rt.home().new_loop("a loop"));
        rt.run(task<int>(ask<&counter::add_slowly>(r, 1)));
    }
    pool.join();
}

TEST_CASE("sleepers wake in order of time")
{
    asio::io_context context;
    asio_runtime rt(context);
    std::vector<int> woken;
    auto sleeper = [&](int n) -> task<> {
        co_await rt.home().clock().sleep_for(n * 1ms);
        woken.push_back(n);
    };
    auto body = [&](scope& s) -> task<> {
        for (int n : {5, 1, 4, 2, 3})
            s.start(sleeper(n));
        co_return;
    };
    auto const start = rt.home().clock().now();
    rt.run(with_scope(body));
    CHECK(woken == std::vector{1, 2, 3, 4, 5});
    CHECK(rt.home().clock().now() - start >= 5ms);
}

TEST_CASE("a stop that races with a timer of the context resumes once")
{
    test::frame_check frames;
    running_context io(2);
    asio_runtime rt(io.context.get_executor());
    int woken = 0;
    int cancelled = 0;
    auto& c = rt.home().clock();
    auto races = [&]() -> task<> {
        for (int i = 0; i < 500; ++i) {
            auto sleeper = [&]() -> task<> {
                auto outcome = co_await as_result(c.sleep_for(20us));
                ++(outcome ? woken : cancelled);
            };
            auto body = [&](scope& s) -> task<> {
                s.start(sleeper);
                co_await c.sleep_for(20us);
                s.request_stop();
            };
            co_await with_scope(body);
        }
    };
    rt.run(races());
    CHECK(woken + cancelled == 500);
}

TEST_CASE("an alarm that is no longer wanted does not keep the context running, nor does one for the end of time")
{
    asio::io_context context;
    asio_runtime rt(context);
    auto r = rt.home().spawn<counter>();
    bool quick = false;
    auto in_time = [&]() -> task<> {
        auto sum = co_await timeout(rt.home().clock(), 24h, ask<&counter::add>(r, 1));
        CHECK(sum == 1);
        quick = true;
    };
    async_start(rt.home(), in_time(), [](std::error_code) {});
    async_start(rt.home(), sleep_for(rt.home(), duration::max()), [](std::error_code) {});
    context.run(); // would take a day
    CHECK(quick);
}

TEST_CASE("a runtime in a context has the time that it is given")
{
    asio::io_context context;
    manual_clock made_up(time_point(5s));
    asio_runtime_options options;
    options.clock = &made_up;
    asio_runtime rt(context, options);
    bool woken = false;
    auto sleeps = [&]() -> task<> {
        co_await rt.home().clock().sleep_for(1h);
        woken = true;
    };
    async_start(rt.home(), sleeps(), [](std::error_code) {});
    context.poll();
    context.restart();
    CHECK(!woken);
    made_up.advance(1h);
    context.poll();
    CHECK(woken);
}

namespace {

/// Waits until it is asked to stop, and notes that it was.
task<> wait_for_stop(bool& stopped)
{
    event never;
    auto outcome = co_await as_result(never.wait());
    stopped = outcome.error() == errc::cancelled;
}

} // namespace

TEST_CASE("what a handler throws comes out of run when the task has ended, asked to stop")
{
    test::frame_check frames;
    asio::io_context context;
    asio_runtime rt(context);
    bool stopped = false;
    asio::post(context, [] { throw std::runtime_error("of a handler"); });
    CHECK_THROWS_WITH(rt.run(wait_for_stop(stopped)), "of a handler");
    CHECK(stopped);
    CHECK(!context.stopped());
}

TEST_CASE("a context that is stopped ends run with errc::cancelled, and stays stopped")
{
    test::frame_check frames;
    asio::io_context context;
    asio_runtime rt(context);
    bool stopped = false;
    asio::post(context, [&] { context.stop(); });
    CHECK_THROWS_AS(rt.run(wait_for_stop(stopped)), error);
    CHECK(stopped);
    CHECK(context.stopped());
}

TEST_CASE("what a completion handler throws comes out of the context's run, not out of a turn of plait's")
{
    asio::io_context context;
    asio_runtime rt(context);
    auto quick = []() -> task<> { co_return; };
    auto throws = [](std::error_code) { throw std::runtime_error("of a handler"); };
    async_start(rt.home(), quick(), asio::bind_executor(context.get_executor(), throws));
    CHECK_THROWS_WITH(context.run(), "of a handler");
}

TEST_CASE("an actor may let go of its loop in the loop's own last turn, and loops don't add up")
{
    asio::io_context context;
    asio_runtime rt(context);
    auto visits = [&]() -> task<> {
        for (int i = 0; i < 100; ++i) {
            auto r = rt.home().spawn_on<counter>(rt.home().new_loop("a loop"));
            auto sum = co_await ask<&counter::add>(r, 1);
            CHECK(sum == 1);
        }
        auto last = rt.home().spawn_on<counter>(rt.home().new_loop("a loop"));
        co_await stop(last);
    };
    rt.run(visits());
}

TEST_CASE("a handler runs a whole simulation, which needs nothing of the context")
{
    asio::io_context context;
    std::uint64_t steps = 0;
    asio::post(context, [&] {
        simulation all;
        auto body = [&]() -> task<int> {
            auto r = all.home().spawn<counter>();
            co_await all.home().clock().sleep_for(1h);
            co_return co_await ask<&counter::add>(r, 1);
        };
        CHECK(all.run(body()) == 1);
        steps = all.steps();
    });
    context.run();
    CHECK(steps > 0);
}
