#include <plait/tests/support/co_test.hpp>

#include <plait/actors/time/alarm.hpp>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct counted_alarm : alarm {
    counted_alarm(plait::clock& c, executor& where)
        : alarm(c, where, [](alarm& self) noexcept { ++static_cast<counted_alarm&>(self).rung; })
    {
    }
    int rung = 0;
};

} // namespace

CO_TEST_CASE("an alarm rings once, at its time, as a work of its executor, and can be set again")
{
    manual_clock c;
    task_context const context = co_await detail::current_context();
    counted_alarm a(c, *context.exec);
    a.set(time_point(5ms));
    c.advance(4ms);
    co_await this_task::yield();
    CHECK(a.rung == 0);
    c.advance(1ms);
    CHECK(a.rung == 0); // it was posted
    co_await this_task::yield();
    CHECK(a.rung == 1);
    c.advance(100ms);
    a.set(time_point(5ms)); // that has passed
    c.advance(1ms);
    co_await this_task::yield();
    CHECK(a.rung == 2);
}

CO_TEST_CASE("an alarm that was cancelled does not ring, and says whether it was in time")
{
    manual_clock c;
    task_context const context = co_await detail::current_context();
    counted_alarm a(c, *context.exec);
    CHECK_FALSE(a.cancel()); // not set
    a.set(time_point(5ms));
    CHECK(a.cancel());
    CHECK_FALSE(a.cancel());
    c.advance(10ms);
    co_await this_task::yield();
    CHECK(a.rung == 0);
    a.set(time_point(20ms));
    c.advance(10ms);
    CHECK_FALSE(a.cancel()); // on its way
    co_await this_task::yield();
    CHECK(a.rung == 1);
}
