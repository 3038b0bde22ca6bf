#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>

namespace plait::bench::with_plait {

namespace {

// Not inlined: a child whose frame the compiler has put into its parent's would not be one.
[[gnu::noinline]] task<std::int64_t> child(std::int64_t i)
{
    co_return i;
}

task<std::int64_t> await_children(std::int64_t n)
{
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += co_await child(i);
    co_return sum;
}

class parent : public actor {
public:
    task<sample> measure(std::int64_t n)
    {
        co_await await_children(warm_up(n));
        std::int64_t sum = 0;
        laps times(n);
        for (; times.left(); times.lap())
            sum += co_await await_children(times.part());
        auto out = times.over();
        check(sum, times.sum(), "await");
        co_return out;
    }
};

} // namespace

sample await_child(std::int64_t n)
{
    runtime home;
    return home.run(task<sample>(ask<&parent::measure>(home.spawn<parent>(), n)));
}

} // namespace plait::bench::with_plait
