#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/counting_memory.hpp>

#include <plait/actors/asio.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_allocator.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <asio/write.hpp>

#include <filesystem>
#include <future>
#include <memory_resource>
#include <thread>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

task<int> number(int n)
{
    co_await this_task::yield();
    co_return n;
}

task<std::unique_ptr<int>> fails()
{
    co_await this_task::yield();
    throw error(errc::overloaded, "a test");
}

task<> does_nothing()
{
    co_await this_task::yield();
}

task<> wait_forever()
{
    event never;
    co_await never.wait();
}

/// An io_context that threads of its own run, until the end of its life.
struct running_context {
    explicit running_context(unsigned count = 1)
    {
        for (unsigned i = 0; i < count; ++i)
            threads.emplace_back([this] { context.run(); });
    }
    ~running_context()
    {
        guard.reset();
        for (auto& t : threads)
            t.join();
    }

    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
    std::vector<std::thread> threads;
};

/// An operation that is what `body` does with its handler.
template<class Body, class Token>
auto operation(Body body, Token&& token)
{
    return asio::async_initiate<Token, void(std::error_code, int)>(
        [](auto&& handler, Body body) { body(std::forward<decltype(handler)>(handler)); }, token, std::move(body));
}

struct answers : actor {
    int add(int a, int b) { return a + b; }
};

} // namespace

TEST_CASE("a callback gets a task's value through its executor, never inside the call")
{
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    int value = 0;
    bool inside = true;
    auto handler = [&](std::error_code code, int n) {
        CHECK(!code);
        CHECK(!inside);
        CHECK(context.get_executor().running_in_this_thread());
        value = n;
    };
    async_start(rt, number(5), asio::bind_executor(context.get_executor(), handler));
    inside = false;
    context.run(); // outstanding work keeps it running
    CHECK(value == 5);
}

TEST_CASE("a callback without an executor is called by the runtime's thread")
{
    test::frame_check frames;
    runtime rt;
    std::promise<int> promise;
    auto handler = [&](std::error_code, int n) { promise.set_value(n); };
    async_start(rt, number(6), handler);
    CHECK(promise.get_future().get() == 6);
}

#if defined(__linux__)
TEST_CASE("completing a future starts no thread that is not the runtime's")
{
    auto threads = [] {
        std::filesystem::directory_iterator all("/proc/self/task");
        return std::distance(begin(all), end(all));
    };
    test::frame_check frames;
    runtime rt;
    auto before = threads();
    CHECK(async_start(rt, number(4), asio::use_future).get() == 4);
    CHECK(threads() == before);
}
#endif

TEST_CASE("a future gets a task's value or its error")
{
    test::frame_check frames;
    runtime rt;
    auto good = async_start(rt, number(7), asio::use_future);
    CHECK(good.get() == 7);
    auto bad = async_start(rt, fails(), asio::use_future);
    CHECK_THROWS_AS(bad.get(), std::system_error);
    auto nothing = async_start(rt, does_nothing(), asio::use_future);
    nothing.get();
}

TEST_CASE("an Asio coroutine awaits a plait task, as a value, a tuple or an exception")
{
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    bool done = false;
    auto body = [&]() -> asio::awaitable<void> {
        auto n = co_await async_start(rt, number(8), asio::use_awaitable);
        CHECK(n == 8);
        CHECK(context.get_executor().running_in_this_thread());
        auto outcome = co_await async_start(rt, fails(), asio::experimental::as_tuple(asio::use_awaitable));
        CHECK(std::get<0>(outcome) == errc::overloaded);
        CHECK(std::get<1>(outcome) == nullptr);
        auto r = rt.spawn<answers>();
        auto sum = co_await async_start(rt, ask<&answers::add>(r, 2, 3), asio::use_awaitable);
        CHECK(sum == 5);
        done = true;
    };
    asio::co_spawn(context, body(), asio::detached);
    context.run();
    CHECK(done);
}

TEST_CASE("the || operator cancels a plait task that lost")
{
    using namespace asio::experimental::awaitable_operators;
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    bool done = false;
    auto body = [&]() -> asio::awaitable<void> {
        asio::steady_timer timer(context, 1ms);
        auto first =
            co_await (async_start(rt, wait_forever(), asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
        CHECK(first.index() == 1);
        timer.expires_after(24h);
        auto second =
            co_await (async_start(rt, number(9), asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
        CHECK(second.index() == 0);
        done = true;
    };
    asio::co_spawn(context, body(), asio::detached);
    context.run();
    CHECK(done);
}

TEST_CASE("a cancellation slot stops the task")
{
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    asio::cancellation_signal signal;
    std::error_code seen;
    auto handler = [&](std::error_code code) { seen = code; };
    async_start(rt, wait_forever(),
                asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(context.get_executor(), handler)));
    asio::post(context, [&] { signal.emit(asio::cancellation_type::terminal); });
    context.run();
    CHECK(seen == errc::cancelled);
    signal.emit(asio::cancellation_type::terminal); // late, and harmless
}

TEST_CASE("a cancellation signal may go before the task that it could have stopped")
{
    test::frame_check frames;
    std::error_code seen;
    asio::io_context context;
    {
        runtime rt;
        auto handler = [&](std::error_code code) { seen = code; };
        asio::cancellation_signal signal;
        async_start(rt, wait_forever(),
                    asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(context.get_executor(), handler)));
    }
    context.run();
    CHECK(seen == errc::cancelled);
}

TEST_CASE("a cancellation that races with the end of its task, which another thread runs, is answered once")
{
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    int answered = 0;
    for (int i = 0; i < 500; ++i) {
        asio::cancellation_signal signal;
        auto handler = [&](std::error_code code, int n) {
            CHECK((code ? code == errc::cancelled : n == i));
            ++answered;
        };
        async_start(rt, number(i),
                    asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(context.get_executor(), handler)));
        if (i % 2 == 0) std::this_thread::yield();
        signal.emit(asio::cancellation_type::terminal);
        context.run();
        context.restart();
    }
    CHECK(answered == 500);
}

TEST_CASE("the handler's allocator gives the memory, and has it back before the handler runs")
{
    test::frame_check frames;
    test::counting_memory memory;
    runtime rt;
    asio::io_context context;
    asio_executor here_too(context.get_executor());
    long at_handler = -1;
    auto handler = [&](std::error_code, int) { at_handler = memory.balance; };
    std::pmr::polymorphic_allocator<char> allocator(&memory);
    async_start(here_too, number(1),
                asio::bind_allocator(allocator, asio::bind_executor(context.get_executor(), handler)));
    context.run();
    CHECK(memory.taken > 0);
    CHECK(at_handler == 0);
}

TEST_CASE("tasks and actors live in an io_context without a thread of plait's own")
{
    test::frame_check frames;
    runtime rt;
    asio::io_context context;
    asio_executor exec(context.get_executor());
    bool done = false;
    auto body = [&]() -> task<> {
        auto r = rt.spawn_on<answers>(exec);
        for (int i = 0; i < 1000; ++i) {
            auto sum = co_await ask<&answers::add>(r, i, 1);
            CHECK(sum == i + 1);
        }
        auto* mine = co_await this_task::executor();
        CHECK(mine == &exec);
        co_await stop(r);
        done = true;
    };
    async_start(exec, body(), asio::bind_executor(context.get_executor(), [](std::error_code code) { CHECK(!code); }));
    context.run();
    CHECK(done);
}

CO_TEST_CASE("a plait task awaits Asio operations and resumes on its own executor")
{
    running_context io;
    auto mine = std::this_thread::get_id();
    asio::steady_timer timer(io.context, 1ms);
    co_await timer.async_wait(use_task);
    CHECK(std::this_thread::get_id() == mine);
    timer.expires_after(1ms);
    auto outcome = co_await timer.async_wait(asio::experimental::as_tuple(use_task));
    CHECK(!std::get<0>(outcome));
    co_await asio::post(io.context, use_task);
    CHECK(std::this_thread::get_id() == mine);
}

CO_TEST_CASE("a stop reaches the Asio operation that the task waits for")
{
    running_context io;
    bool cancelled = false;
    auto sleeps = [&]() -> task<> {
        asio::steady_timer timer(io.context, 24h);
        auto outcome = co_await as_result(timer.async_wait(use_task));
        cancelled = outcome.error() == errc::cancelled;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sleeps);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(cancelled);
}

CO_TEST_CASE("a stop that races with an Asio timer, in a context of several threads, resumes once")
{
    running_context io(3);
    int woken = 0;
    int cancelled = 0;
    for (int i = 0; i < 500; ++i) {
        auto sleeps = [&]() -> task<> {
            asio::steady_timer timer(io.context, 20us);
            auto outcome = co_await as_result(timer.async_wait(use_task));
            woken += outcome.has_value();
            cancelled += outcome.error() == errc::cancelled;
        };
        auto body = [&](scope& s) -> task<> {
            s.start(sleeps);
            co_await rt.clock().sleep_for(i % 2 == 0 ? 20us : 0us);
            s.request_stop();
        };
        co_await with_scope(body);
    }
    CHECK(woken + cancelled == 500);
}

CO_TEST_CASE("an operation that completes within its initiation gives its value, or what the initiation throws")
{
    auto at_once = [](auto handler) { handler(std::error_code(), 7); };
    auto n = co_await operation(at_once, use_task);
    CHECK(n == 7);
    auto throws = [](auto const&) { throw error(errc::overloaded, "an initiation"); };
    auto failed = co_await as_result(operation(throws, use_task));
    CHECK(failed.error() == errc::overloaded);
    auto forgets = [](auto const&) {};
    auto dropped = co_await as_result(operation(forgets, use_task));
    CHECK(dropped.error() == asio::error::operation_aborted);
}

CO_TEST_CASE("a stop that comes within the initiation resumes the task once, and loses no value")
{
    int given = 0;
    auto body = [&](scope& s) -> task<> {
        auto stops = [&s](auto handler) {
            s.request_stop();
            handler(std::error_code(), 7);
        };
        given = co_await operation(stops, use_task);
        auto late = co_await as_result(operation(stops, use_task));
        CHECK(late.error() == errc::cancelled);
    };
    co_await with_scope(body);
    CHECK(given == 7);
}

CO_TEST_CASE("a stop reaches a coroutine of Asio's that a task awaits, and is errc::cancelled there as well")
{
    running_context io;
    auto sleeps = [&]() -> asio::awaitable<int> {
        asio::steady_timer timer(io.context, 24h);
        co_await timer.async_wait(asio::use_awaitable);
        co_return 1;
    };
    std::error_code seen;
    auto waits = [&]() -> task<> {
        auto outcome = co_await as_result(asio::co_spawn(io.context, sleeps(), use_task));
        seen = outcome.error();
    };
    auto body = [&](scope& s) -> task<> {
        s.start(waits);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(seen == errc::cancelled);
}

CO_TEST_CASE("an operation whose context goes ends in operation_aborted")
{
    auto context = std::make_unique<asio::io_context>();
    auto timer = std::make_unique<asio::steady_timer>(*context, 24h);
    std::error_code seen;
    auto sleeps = [&]() -> task<> {
        auto outcome = co_await as_result(timer->async_wait(use_task));
        seen = outcome.error();
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sleeps);
        co_await this_task::yield();
        timer.reset();
        context.reset();
    };
    co_await with_scope(body);
    CHECK(seen == asio::error::operation_aborted);
}

CO_TEST_CASE("a line goes through a socket and back, and a reader that is stopped lets go of it")
{
    using asio::ip::tcp;
    running_context io;
    tcp::acceptor acceptor(io.context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    auto serves = [&]() -> task<> {
        auto socket = co_await acceptor.async_accept(use_task);
        asio::streambuf buffer;
        auto size = co_await asio::async_read_until(socket, buffer, '\n', use_task);
        co_await asio::async_write(socket, buffer.data(), use_task);
        CHECK(size == 6);
        // The client sends no more: only a stop ends this.
        char more = 0;
        auto outcome = co_await as_result(asio::async_read(socket, asio::buffer(&more, 1), use_task));
        CHECK(outcome.error() == errc::cancelled);
    };
    auto body = [&](scope& s) -> task<> {
        s.start(serves);
        tcp::socket socket(io.context);
        auto endpoint = acceptor.local_endpoint();
        co_await socket.async_connect(endpoint, use_task);
        co_await asio::async_write(socket, asio::buffer("hello\n", 6), use_task);
        std::string answer(6, ' ');
        co_await asio::async_read(socket, asio::buffer(answer), use_task);
        CHECK(answer == "hello\n");
        s.request_stop();
        while (s.running() > 0) {
            co_await this_task::yield();
        }
    };
    co_await with_scope(body);
}

TEST_CASE("a runtime that goes stops the tasks that Asio started and still answers them")
{
    test::frame_check frames;
    asio::io_context context;
    int answered = 0;
    auto handler = [&](std::error_code code) {
        CHECK(code == errc::cancelled);
        ++answered;
    };
    {
        runtime rt;
        for (int i = 0; i < 10; ++i) {
            async_start(rt, wait_forever(), asio::bind_executor(context.get_executor(), handler));
        }
    }
    context.run();
    CHECK(answered == 10);
}
