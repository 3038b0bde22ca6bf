#include <plait/actors/shutdown.hpp>

#include <plait/actors/actor.hpp>
#include <plait/actors/gone.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/timeout.hpp>

#include <memory>
#include <ranges>
#include <utility>

namespace plait {

namespace {

/// Keeps the memory of a core.
class core_handle {
public:
    explicit core_handle(detail::actor_core& core) noexcept
        : core_(&core)
    {
        core_->add_weak();
    }
    core_handle(core_handle&& other) noexcept
        : core_(std::exchange(other.core_, nullptr))
    {
    }
    core_handle& operator=(core_handle&&) = delete;
    ~core_handle()
    {
        if (core_) core_->drop_weak();
    }
    detail::actor_core& operator*() const noexcept { return *core_; }

private:
    detail::actor_core* core_;
};

/// Whether it is set in time, whatever the caller's stop.
task<bool> set_by(std::shared_ptr<event> e, clock& time, time_point end)
{
    auto waiting = timeout(time, end, wait_for(*e));
    auto const outcome = co_await as_result(shield(std::move(waiting)));
    co_return outcome.has_value();
}

} // namespace

namespace detail {

task<drained> drain(actor_core& core, clock& time, time_point end_of_draining, time_point end_of_waiting)
{
    auto const end = when_gone(&core);
    post_to(core, [](actor_core& c) noexcept { c.drain(); });
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
        std::vector<core_handle> living;
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
