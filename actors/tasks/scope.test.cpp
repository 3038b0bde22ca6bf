#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/outcomes.hpp>

#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <stdexcept>

using namespace plait;
using namespace plait::test;

CO_TEST_CASE("a scope joins what was started in it")
{
    int ended = 0;
    auto body = [&](scope& s) -> task<> {
        auto child = [&]() -> task<> {
            co_await this_task::yield();
            co_await this_task::yield();
            ++ended;
        };
        s.start(child);
        s.start(child);
        CHECK(s.running() == 2);
        CHECK(ended == 0);
        co_return;
    };
    co_await with_scope(body);
    CHECK(ended == 2);
}

CO_TEST_CASE("a failure cancels the rest of the scope, and the first one is thrown")
{
    bool body_cancelled = false;
    auto body = [&](scope& s) -> task<> {
        s.start(wait_forever());
        s.start(fail_with("first"));
        s.start(fail_with("second"));
        auto wait = co_await as_result(wait_forever());
        body_cancelled = wait.error() == errc::cancelled;
    };
    auto outcome = co_await as_result(with_scope(body));
    CHECK(what(outcome.failure()) == "first");
    CHECK(body_cancelled);
}

CO_TEST_CASE("a body that throws still has its tasks joined")
{
    bool ended = false;
    auto body = [&](scope& s) -> task<> {
        auto child = [&]() -> task<> {
            auto wait = co_await as_result(wait_forever());
            CHECK(wait.error() == errc::cancelled);
            co_await this_task::yield();
            ended = true;
        };
        s.start(child);
        co_await this_task::yield();
        throw std::runtime_error("body");
    };
    auto outcome = co_await as_result(with_scope(body));
    CHECK(what(outcome.failure()) == "body");
    CHECK(ended);
}

CO_TEST_CASE("a body that is no coroutine and throws still has its tasks joined")
{
    bool ended = false;
    auto child = [&]() -> task<> {
        co_await this_task::yield();
        ended = true;
    };
    auto body = [&](scope& s) -> task<> {
        s.start(child);
        throw std::runtime_error("no body");
    };
    auto outcome = co_await as_result(with_scope(body));
    CHECK(what(outcome.failure()) == "no body");
    CHECK(ended);
}

CO_TEST_CASE("a scope that was asked to stop ends without a failure")
{
    auto body = [](scope& s) -> task<int> {
        s.start(wait_forever());
        s.start(wait_forever());
        co_await this_task::yield();
        s.request_stop();
        co_return 4;
    };
    auto value = co_await with_scope(body);
    CHECK(value == 4);
}

CO_TEST_CASE("a stop from outside passes through nested scopes")
{
    auto inner = [](scope& s) -> task<> {
        s.start(wait_forever());
        co_return;
    };
    auto outer = [&](scope& s) -> task<> {
        s.start(with_scope(inner));
        co_await this_task::yield();
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(outer);
    CHECK(true);
}

CO_TEST_CASE("a task may start others in its scope while the scope joins")
{
    int ended = 0;
    auto body = [&](scope& s) -> task<> {
        struct starter {
            static task<> run(scope& s, int depth, int& ended)
            {
                co_await this_task::yield();
                if (depth > 0) s.start(run(s, depth - 1, ended));
                ++ended;
            }
        };
        s.start(starter::run(s, 9, ended));
        co_return;
    };
    co_await with_scope(body);
    CHECK(ended == 10);
}

CO_TEST_CASE("a hundred thousand waiting tasks are cancelled by one stop")
{
    int cancelled = 0;
    event never;
    auto waits = [&]() -> task<> {
        try {
            co_await never.wait();
        } catch (error const& e) {
            if (e.condition() == errc::cancelled) ++cancelled;
        }
    };
    auto body = [&](scope& s) -> task<> {
        for (int i = 0; i < 100'000; ++i) {
            s.start(waits);
        }
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(cancelled == 100'000);
}
