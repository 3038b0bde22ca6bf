#include <plait/actors/supervisor.hpp>

#include <plait/actors/error.hpp>

#include <algorithm>
#include <atomic>
#include <ranges>

namespace plait {

namespace {

void pause_core(detail::actor_core& core) noexcept
{
    core.pause();
}

void restart_core(detail::actor_core& core) noexcept
{
    core.restart();
}

/// Has `what` done to a child on its executor.
void tell_core(ref<actor> const& child, void (*what)(detail::actor_core&) noexcept)
{
    detail::post_to(*detail::ref_access::core(child), what);
}

} // namespace

/// A child's way up. It does not keep the supervisor.
class supervisor::link final : public detail::guardian {
public:
    link(ref<supervisor> const& above, std::uint64_t id)
        : above_(above)
        , id_(id)
    {
    }

    void down(detail::actor_core& core, failure const* what) noexcept override
    {
        auto above = above_.lock();
        auto copy = what ? std::optional(*what) : std::nullopt;
        if (above && detail::make_tell<&supervisor::child_down>(std::move(above), id_, std::move(copy)).push()) return;
        // Nobody is left who would restart it.
        if (what) core.home().unhandled(*what);
        core.close();
    }

    void gone(detail::actor_core&) noexcept override
    {
        if (auto above = above_.lock()) detail::make_tell<&supervisor::child_gone>(std::move(above), id_).push();
    }

private:
    weak_ref<supervisor> above_;
    std::uint64_t id_;
};

std::pair<std::shared_ptr<detail::guardian>, std::uint64_t> supervisor::make_link(ref<supervisor> const& above)
{
    static std::atomic<std::uint64_t> next{0};
    auto id = next.fetch_add(1, std::memory_order_relaxed);
    return {std::make_shared<link>(above, id), id};
}

void supervisor::adopt_from_outside(ref<supervisor> const& above, std::uint64_t id, ref<actor> const& handle)
{
    if (!detail::make_tell<&supervisor::adopt>(above, id, handle).push()) request_stop(handle);
}

supervisor::supervisor(supervisor_options options)
    : options_(options)
    , random_(home().random_seed())
{
    if (options.first_delay < duration::zero() || options.longest_delay < duration::zero() ||
        options.window <= duration::zero())
        throw error(errc::invalid_argument, "a supervisor's times are not negative, and its window is positive");
    if (!(options.jitter >= 0 && options.jitter <= 1)) throw error(errc::invalid_argument, "jitter: not from 0 to 1");
}

supervisor::supervisor(supervisor_options options, family children)
    : supervisor(options)
{
    children_ = std::move(children);
}

void supervisor::restarted()
{
    restarting_all_ = true;
    pause_all();
    restart_all_when_down();
}

task<> supervisor::stopping()
{
    while (!children_.empty()) {
        auto youngest = std::move(children_.back().handle);
        children_.pop_back();
        co_await stop(std::move(youngest));
    }
}

void supervisor::adopt(std::uint64_t id, ref<actor> handle)
{
    children_.emplace_back(id, std::move(handle));
    if (restarting_all_) tell_core(children_.back().handle, pause_core);
    // Its constructor may have made it known to others, so it may have failed before this.
    auto early = std::ranges::find(early_, id, &std::pair<std::uint64_t, std::optional<failure>>::first);
    if (early == early_.end()) return;
    detail::make_tell<&supervisor::child_down>(self(*this), id, std::move(early->second)).push();
    early_.erase(early);
}

task<> supervisor::child_down(std::uint64_t id, std::optional<failure> what)
{
    auto* fallen = find(id);
    if (!fallen) {
        early_.emplace_back(id, std::move(what));
        co_return;
    }
    fallen->down = true;
    if (what && !restarting_all_) {
        auto now = home().clock().now();
        while (!restarts_.empty() && restarts_.front() + options_.window <= now)
            restarts_.pop_front();
        if (restarts_.size() >= options_.most) {
            escalate(*what);
            co_return;
        }
        auto delay = next_delay();
        restarts_.push_back(time_point(now));
        if (options_.strategy == restarts::one_for_all) {
            restarting_all_ = true;
            pause_all();
        }
        ++delayed_;
        if (delay > duration::zero()) co_await home().clock().sleep_for(delay);
        --delayed_;
        if (options_.strategy == restarts::one_for_one) {
            fallen = find(id);
            if (!fallen || !fallen->down) co_return;
            fallen->down = false;
            tell_core(fallen->handle, restart_core);
            co_return;
        }
    }
    restart_all_when_down();
}

void supervisor::child_gone(std::uint64_t id)
{
    std::erase_if(children_, [&](child const& c) { return c.id == id; });
    restart_all_when_down();
}

supervisor::child* supervisor::find(std::uint64_t id) noexcept
{
    auto found = std::ranges::find(children_, id, &child::id);
    return found == children_.end() ? nullptr : &*found;
}

duration supervisor::next_delay()
{
    auto delay = options_.first_delay;
    for (std::size_t i = 0; i < restarts_.size() && delay < options_.longest_delay; ++i)
        delay *= 2;
    delay = std::min(delay, options_.longest_delay);
    auto const chance = static_cast<double>(random_.next() >> 11) * 0x1p-53;
    return duration(static_cast<std::int64_t>(static_cast<double>(delay.count()) * (1 - options_.jitter * chance)));
}

void supervisor::escalate(failure const& what)
{
    if (core_.guarded()) {
        core_.pause(what);
        return;
    }
    core_.home().unhandled(what);
    core_.close();
}

void supervisor::pause_all()
{
    for (auto const& c : children_)
        if (!c.down) tell_core(c.handle, pause_core);
}

void supervisor::restart_all_when_down()
{
    if (!restarting_all_ || delayed_ > 0) return;
    if (!std::ranges::all_of(children_, &child::down)) return;
    restarting_all_ = false;
    for (auto& c : children_) {
        c.down = false;
        tell_core(c.handle, restart_core);
    }
}

} // namespace plait
