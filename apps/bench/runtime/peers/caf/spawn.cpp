#include <plait/apps/bench/runtime/peers/caf/caf.hpp>

#include <plait/apps/bench/runtime/allocations.hpp>
#include <plait/apps/bench/runtime/peers/caf/system.hpp>

#include <atomic>
#include <vector>

namespace plait::bench::with_caf {

namespace {

std::atomic<std::int64_t> ended{0};

class short_lived : public caf::event_based_actor {
public:
    explicit short_lived(caf::actor_config& config)
        : caf::event_based_actor(config)
    {
    }
    ~short_lived() override { ++ended; }
    caf::behavior make_behavior() override
    {
        return {[](std::int64_t i) { return i; }};
    }
};

/// Spawns actors, one after the other is gone.
class spawner : public caf::event_based_actor {
public:
    spawner(caf::actor_config& config, sample* out)
        : caf::event_based_actor(config)
        , out_(out)
    {
    }

    caf::behavior make_behavior() override
    {
        set_down_handler([this](caf::down_msg&) { next(); });
        return {[this](std::int64_t n) {
            done_ = make_response_promise();
            n_ = n;
            left_ = n + warm_up(n);
            next();
            return done_;
        }};
    }

private:
    void next()
    {
        if (left_ == n_) meter_ = meter();
        if (left_-- == 0) {
            *out_ = meter_.over(n_);
            done_.deliver(n_);
            return;
        }
        auto child = spawn<short_lived>();
        monitor(child);
        send_exit(child, caf::exit_reason::user_shutdown);
    }

    sample* out_;
    caf::response_promise done_;
    meter meter_;
    std::int64_t n_ = 0, left_ = 0;
};

caf::behavior hold(caf::event_based_actor*, std::int64_t value)
{
    return {[value](std::int64_t) { return value; }};
}

} // namespace

sample spawn_and_stop(std::int64_t n)
{
    settings config(1);
    ended = 0;
    sample out;
    {
        caf::actor_system system(config);
        check(run(system, system.spawn<spawner>(&out), n), n, "spawn");
    }
    check(ended, n + warm_up(n), "spawn");
    return out;
}

sample idle_actor(std::int64_t n)
{
    settings config(1);
    caf::actor_system system(config);
    std::vector<caf::actor> all;
    all.reserve(static_cast<std::size_t>(n));
    double made = 0;
    {
        count_allocations counting;
        auto const before = allocated_bytes();
        for (std::int64_t i = 0; i < n; ++i)
            all.push_back(system.spawn(hold, i));
        check(ask(system, all.back(), 0), n - 1, "idle actors"); // by now all of them are idle
        made = static_cast<double>(allocated_bytes() - before);
    }
    return {made / static_cast<double>(n), 0};
}

} // namespace plait::bench::with_caf
