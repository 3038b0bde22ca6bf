#include <doctest/doctest.h>

#include <asio/awaitable.hpp>
#include <asio/bind_allocator.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include <plait/engine/async.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/counting_memory.hpp>
#include <plait/tests/support/engine_fixture.hpp>

using namespace plait;
using namespace plait::test;
using namespace asio::experimental::awaitable_operators;

namespace {

/// A small engine, and an io_context that the test runs. Checks at its end that everything was given back.
struct fixture {
    frame_check frames;
    tiny_file model;
    std::atomic<bool> held = false; ///< while it is set, no request gets a step
    asio::io_context context;
    runtime home;
    engine running = home.run(open(home, options()));

    fixture() = default;
    ~fixture()
    {
        home.run(drained(running));
        home.run(running.close());
    }

    engine_options options()
    {
        auto out = tiny_engine(model.path());
        auto rule = [this, arrival = first_come_first_served()](snapshot const& now) mutable {
            return held ? step_plan() : arrival.next(now);
        };
        out.schedule = make_policy(rule);
        return out;
    }

    /// Lets requests have steps again. The engine looks when something happens to it.
    void let_go()
    {
        held = false;
        home.run(collect_from(running, ask_for("wake up", 1)));
    }

    /// Runs an Asio coroutine to its end on this thread.
    void run(std::function<asio::awaitable<void>()> body)
    {
        std::exception_ptr failure;
        asio::co_spawn(context, body(), [&](std::exception_ptr e) { failure = e; });
        context.run();
        context.restart();
        if (failure) std::rethrow_exception(failure);
    }

    std::vector<std::int32_t> alone(request what)
    {
        return home.run(collect_from(running, std::move(what))).of_choice(0);
    }
};

void add(std::vector<std::int32_t>& ids, piece const& from)
{
    for (auto const& token : from.tokens)
        ids.push_back(token.id);
}

asio::awaitable<std::vector<std::int32_t>> read_all(generation from)
{
    std::vector<std::int32_t> ids;
    for (;;) {
        auto got = co_await async_next(from, asio::use_awaitable);
        if (!got) break;
        add(ids, *got);
    }
    co_return ids;
}

} // namespace

TEST_CASE("an Asio coroutine opens a model, asks, reads the whole answer and closes")
{
    frame_check frames;
    tiny_file model;
    asio::io_context context;
    runtime home;
    std::size_t tokens = 0;
    bool closed = false;
    auto body = [&]() -> asio::awaitable<void> {
        auto running = co_await async_open(home, tiny_engine(model.path()), asio::use_awaitable);
        CHECK(context.get_executor().running_in_this_thread());
        auto answer = co_await async_submit(running, ask_for("hello", 20), asio::use_awaitable);
        CHECK(context.get_executor().running_in_this_thread());
        auto ids = co_await read_all(std::move(answer));
        tokens = ids.size();
        co_await async_close(running, true, asio::use_awaitable);
        auto refused =
            co_await async_submit(running, ask_for("late", 1), asio::experimental::as_tuple(asio::use_awaitable));
        CHECK((std::get<0>(refused) == errc::closed || std::get<0>(refused) == errc::receiver_gone));
        CHECK(!std::get<1>(refused));
        closed = true;
    };
    asio::co_spawn(context, body(), asio::detached);
    context.run();
    CHECK(tokens == 20);
    CHECK(closed);
}

TEST_CASE("opening a file that is not there completes with the code and an empty engine")
{
    runtime home;
    engine_options options;
    options.model = "/nowhere/model.gguf";
    auto opened = async_open(home, options, asio::use_future);
    try {
        auto running = opened.get();
        CHECK(false);
    } catch (std::system_error const& e) {
        CHECK(e.code() == errc::not_found);
    }
    CHECK(!engine());
}

TEST_CASE("callbacks get an answer through their executor, never inside the call")
{
    fixture f;
    auto expected = f.alone(ask_for("callbacks", 12));
    std::vector<std::int32_t> ids;
    generation answer;
    bool inside = true;
    bool ended = false;
    auto on = [&](auto handler) { return asio::bind_executor(f.context.get_executor(), std::move(handler)); };
    auto check_place = [&] {
        CHECK(!inside);
        CHECK(f.context.get_executor().running_in_this_thread());
    };
    std::function<void(std::error_code, std::optional<piece>)> take = [&](std::error_code code,
                                                                          std::optional<piece> got) {
        check_place();
        CHECK(!code);
        ended = !got;
        if (!got) return;
        add(ids, *got);
        inside = true;
        async_next(answer, on(take));
        inside = false;
    };
    auto submitted = [&](std::error_code code, generation given) {
        check_place();
        CHECK(!code);
        answer = std::move(given);
        inside = true;
        async_next(answer, on(take));
        inside = false;
    };
    async_submit(f.running, ask_for("callbacks", 12), on(submitted));
    inside = false;
    f.context.run();
    CHECK(ended);
    CHECK(ids == expected);
}

TEST_CASE("futures get an answer on a thread without an event loop")
{
    fixture f;
    auto expected = f.alone(ask_for("futures", 9));
    auto answer = async_submit(f.running, ask_for("futures", 9), asio::use_future).get();
    std::vector<std::int32_t> ids;
    for (;;) {
        auto got = async_next(answer, asio::use_future).get();
        if (!got) break;
        add(ids, *got);
    }
    CHECK(ids == expected);
    CHECK(answer.result().choices.front().finish == finish_reason::length);
}

TEST_CASE("a refused request completes with the code that says why")
{
    fixture f;
    auto bad = ask_for("bad", 1);
    bad.sampling.top_p = 2;
    f.run([&]() -> asio::awaitable<void> {
        auto [code, answer] =
            co_await async_submit(f.running, std::move(bad), asio::experimental::as_tuple(asio::use_awaitable));
        CHECK(code == errc::invalid_argument);
        CHECK(!answer);
    });
    generation none;
    CHECK_THROWS_AS(async_next(none, asio::use_future), error);
}

TEST_CASE("a wait that loses against a timer is stopped, and the answer stays whole")
{
    fixture f;
    auto expected = f.alone(ask_for("patience", 30));
    std::vector<std::int32_t> ids;
    int lost = 0;
    f.run([&]() -> asio::awaitable<void> {
        auto answer = co_await async_submit(f.running, ask_for("patience", 30), asio::use_awaitable);
        asio::steady_timer timer(f.context);
        for (;;) {
            // A timer that never fires in time: the piece wins, and the timer's wait is what is cancelled.
            timer.expires_after(std::chrono::hours(24));
            auto first = co_await (async_next(answer, asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
            REQUIRE(first.index() == 0);
            auto& got = std::get<0>(first);
            if (!got) break;
            add(ids, *got);
        }
        // After the last piece there is nothing to wait for.
        auto after = co_await async_next(answer, asio::use_awaitable);
        CHECK(!after);
    });
    CHECK(ids == expected);

    f.held = true;
    f.run([&]() -> asio::awaitable<void> {
        auto answer = co_await async_submit(f.running, ask_for("patience", 30), asio::use_awaitable);
        for (int i = 0; i < 5; ++i) {
            asio::steady_timer timer(f.context, std::chrono::microseconds(10));
            auto first = co_await (async_next(answer, asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
            lost += first.index() == 1;
        }
        f.let_go();
        auto rest = co_await read_all(std::move(answer));
        CHECK(rest == expected);
    });
    CHECK(lost == 5);
}

TEST_CASE("a cancellation slot stops a wait for the next piece, and the request goes on")
{
    fixture f;
    auto expected = f.alone(ask_for("slot", 10));
    f.held = true;
    auto answer = async_submit(f.running, ask_for("slot", 10), asio::use_future).get();

    asio::cancellation_signal signal;
    std::error_code seen;
    auto handler = [&](std::error_code code, std::optional<piece> got) {
        seen = code;
        CHECK(!got);
    };
    async_next(answer,
               asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(f.context.get_executor(), handler)));
    asio::post(f.context, [&] { signal.emit(asio::cancellation_type::terminal); });
    f.context.run();
    f.context.restart();
    CHECK(seen == errc::cancelled);
    signal.emit(asio::cancellation_type::terminal); // late, and harmless

    f.let_go();
    f.run([&]() -> asio::awaitable<void> {
        auto ids = co_await read_all(std::move(answer));
        CHECK(ids == expected);
    });
}

TEST_CASE("a generation that goes while its next piece is awaited ends the wait")
{
    fixture f;
    f.held = true;
    auto answer = std::make_unique<generation>(async_submit(f.running, ask_for("gone", 10), asio::use_future).get());
    bool ended = false;
    auto handler = [&](std::error_code code, std::optional<piece> got) {
        ended = !code && (!got || got->finish == finish_reason::cancelled);
    };
    async_next(*answer, asio::bind_executor(f.context.get_executor(), handler));
    asio::post(f.context, [&] { answer.reset(); });
    f.context.run();
    CHECK(ended);
}

TEST_CASE("the handler's allocator gives the memory of an operation")
{
    test::counting_memory memory;
    {
        fixture f;
        std::pmr::polymorphic_allocator<char> allocator(&memory);
        auto answer = async_submit(f.running, ask_for("memory", 3), asio::use_future).get();
        bool called = false;
        auto handler = [&](std::error_code, std::optional<piece>) { called = true; };
        asio::post(f.context, [&] {
            async_next(answer, asio::bind_allocator(allocator, asio::bind_executor(f.context.get_executor(), handler)));
        });
        f.context.run();
        CHECK(called);
    }
    CHECK(memory.taken > 0);
    CHECK(memory.balance == 0);
}

TEST_CASE("many Asio coroutines share an engine, and each gets the answer that it would get alone")
{
    fixture f;
    std::vector<std::vector<std::int32_t>> expected, got(24);
    for (std::size_t i = 0; i < got.size(); ++i)
        expected.push_back(f.alone(ask_for("client " + std::to_string(i), 10 + static_cast<std::int64_t>(i))));
    auto client = [&](std::size_t i) -> asio::awaitable<void> {
        auto what = ask_for("client " + std::to_string(i), 10 + static_cast<std::int64_t>(i));
        auto answer = co_await async_submit(f.running, std::move(what), asio::use_awaitable);
        got[i] = co_await read_all(std::move(answer));
    };
    for (std::size_t i = 0; i < got.size(); ++i)
        asio::co_spawn(f.context, client(i), asio::detached);
    f.context.run();
    CHECK(got == expected);
}
