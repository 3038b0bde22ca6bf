#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>

namespace plait::bench::with_plait {

namespace {

class short_lived : public actor {
public:
    explicit short_lived(std::int64_t& ended)
        : ended_(ended)
    {
    }
    ~short_lived() { ++ended_; }

private:
    std::int64_t& ended_;
};

class spawner : public actor {
public:
    task<sample> measure(std::int64_t n)
    {
        co_await spawn(warm_up(n));
        ended_ = 0;
        meter m;
        co_await spawn(n);
        auto const out = m.over(n);
        check(ended_, n, "spawn");
        co_return out;
    }

private:
    task<> spawn(std::int64_t n)
    {
        for (std::int64_t i = 0; i < n; ++i)
            co_await stop(home().spawn<short_lived>(ended_));
    }

    std::int64_t ended_ = 0; ///< on the one thread of the pool
};

} // namespace

sample spawn_and_stop(std::int64_t n)
{
    runtime home;
    return home.run(task<sample>(ask<&spawner::measure>(home.spawn<spawner>(), n)));
}

} // namespace plait::bench::with_plait
