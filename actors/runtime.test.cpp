#include <plait/tests/support/co_test.hpp>

#include <plait/actors/channel.hpp>
#include <plait/actors/event.hpp>
#include <plait/actors/scope.hpp>

using namespace plait;
using namespace std::chrono_literals;

namespace {

task<int> number(int n)
{
    co_return n;
}

struct adder : actor {
    int total = 0;
    int add(int n) { return total += n; }
    task<int> slowly(int n)
    {
        co_await this_task::yield();
        total += n;
        co_return total;
    }
    task<> wait_for_stop()
    {
        event never;
        co_await never.wait();
    }
};

} // namespace

TEST_CASE("a runtime runs a task on the calling thread and gives its value")
{
    test::frame_check frames;
    runtime rt;
    CHECK(rt.run(number(7)) == 7);
}

CO_TEST_CASE("an ask gives what the method returns, whether it is a coroutine or not")
{
    auto r = rt.spawn<adder>();
    auto a = co_await ask<&adder::add>(r, 3);
    CHECK(a == 3);
    auto b = co_await ask<&adder::slowly>(r, 4);
    CHECK(b == 7);
    co_await tell<&adder::add>(r, 5);
    auto c = co_await ask<&adder::add>(r, 0);
    CHECK(c == 12);
    co_await stop(r);
    auto gone = co_await as_result(ask<&adder::add>(r, 1));
    CHECK(gone.error() == errc::receiver_gone);
}

CO_TEST_CASE("stopping an actor stops its methods and answers their askers")
{
    auto r = rt.spawn<adder>();
    co_await with_scope([&](scope& s) -> task<> {
        bool ended = false;
        auto asker = [&]() -> task<> {
            auto outcome = co_await as_result(ask<&adder::wait_for_stop>(r));
            CHECK(outcome.error() == errc::cancelled);
            ended = true;
        };
        s.start(asker());
        co_await ask<&adder::slowly>(r, 1);
        co_await stop(r);
        co_await this_task::yield();
        CHECK(ended);
    });
}
