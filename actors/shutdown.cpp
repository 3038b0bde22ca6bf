#include <plait/actors/shutdown.hpp>

#include <plait/actors/actor.hpp>
#include <plait/actors/event.hpp>
#include <plait/actors/gone.hpp>
#include <plait/actors/runtime.hpp>
#include <plait/actors/timeout.hpp>

#include <memory>
#include <ranges>

namespace plait {

namespace {

/// Has the core drained on its executor.
void post_drain(detail::actor_core& core)
{
    struct once : work, detail::pooled {
        detail::actor_core* core;
    };
    auto* w = new once;
    w->core = &core;
    w->run = [](work& self) noexcept {
        auto* w = static_cast<once*>(&self);
        auto* core = w->core;
        delete w;
        core->drain();
        core->drop_weak();
    };
    core.add_weak();
    core.post(*w);
}

task<> wait_for(std::shared_ptr<event> e)
{
    co_await e->wait();
}

/// Whether it is set in time, whatever the caller's stop.
task<bool> set_by(std::shared_ptr<event> e, clock& time, time_point end)
{
    auto waiting = timeout(time, end, wait_for(std::move(e)));
    auto const outcome = co_await as_result(shield(std::move(waiting)));
    co_return outcome.has_value();
}

} // namespace

namespace detail {

task<drained> drain(actor_core& core, clock& time, time_point end_of_draining, time_point end_of_waiting)
{
    core_handle const kept(core);
    auto const end = when_gone(&core);
    post_drain(core);
    drained how;
    how.actor = core.label();
    how.gone = co_await set_by(end, time, end_of_draining);
    if (!how.gone) {
        post_stop(core);
        how.gone = co_await set_by(end, time, end_of_waiting);
    }
    how.dropped = core.dropped();
    co_return how;
}

} // namespace detail

task<std::vector<drained>> shutdown(runtime& home, shutdown_limits limits)
{
    auto& time = home.clock();
    auto const end_of_draining = detail::later(time.now(), limits.draining);
    auto const end_of_waiting = detail::later(end_of_draining, limits.stopping);
    std::vector<drained> trouble;
    // Some may be spawned while others end.
    for (std::uint64_t done = 0;;) {
        std::vector<detail::core_handle> living;
        auto newest = done;
        home.registry()->for_each([&](detail::actor_core& core) {
            if (core.id() <= done) return;
            newest = core.id();
            living.emplace_back(core);
        });
        if (living.empty()) co_return trouble;
        done = newest;
        for (auto const& core : living | std::views::reverse) {
            auto how = co_await detail::drain(*core, time, end_of_draining, end_of_waiting);
            if (how.dropped > 0 || !how.gone) trouble.push_back(std::move(how));
        }
    }
}

} // namespace plait
