#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

#include <utility>

namespace plait::bench::with_plait {

namespace {

class echo : public actor {
public:
    std::int64_t same(std::int64_t i) { return i; }
};

class asker : public actor {
public:
    explicit asker(ref<echo> whom)
        : whom_(std::move(whom))
    {
    }

    task<sample> measure(std::int64_t n)
    {
        co_await sum(warm_up(n));
        std::int64_t got = 0;
        laps times(n);
        for (; times.left(); times.lap())
            got += co_await sum(times.part());
        auto out = times.over();
        check(got, times.sum(), "ask");
        co_return out;
    }

private:
    task<std::int64_t> sum(std::int64_t n)
    {
        std::int64_t out = 0;
        for (std::int64_t i = 0; i < n; ++i)
            out += co_await ask<&echo::same>(whom_, i);
        co_return out;
    }

    ref<echo> whom_;
};

/// Each on a processor of its own.
sample ask_between_loops(std::int64_t n, duration spin)
{
    runtime home;
    loop_options first{.name = "asker", .cpu = processor(0), .spin = spin};
    loop_options second{.name = "echo", .cpu = processor(1), .spin = spin};
    auto whom = home.spawn_on<echo>(home.new_loop(second));
    auto who = home.spawn_on<asker>(home.new_loop(first), whom);
    return home.run(task<sample>(ask<&asker::measure>(who, n)));
}

} // namespace

sample ask_beside(std::int64_t n)
{
    runtime home;
    auto whom = home.spawn<echo>();
    return home.run(task<sample>(ask<&asker::measure>(home.spawn<asker>(whom), n)));
}

sample ask_across(std::int64_t n)
{
    return ask_between_loops(n, spin);
}

sample ask_asleep(std::int64_t n)
{
    return ask_between_loops(n, {});
}

} // namespace plait::bench::with_plait
