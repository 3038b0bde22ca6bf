#include <plait/actors/lifecycle.hpp>

namespace plait {

namespace detail {

void lifecycle_hub::tell(lifecycle_event const& event) noexcept
{
    std::lock_guard lock(mutex_);
    // A copy, and each only if it is still wanted: a hook may subscribe and unsubscribe.
    auto const now = hooks_;
    for (auto const& h : now) {
        if (*h) (*h)(event);
    }
}

std::shared_ptr<lifecycle_hub::hook> lifecycle_hub::add(hook h)
{
    auto kept = std::make_shared<hook>(std::move(h));
    std::lock_guard lock(mutex_);
    hooks_.push_back(kept);
    heard_.store(true, std::memory_order_relaxed);
    return kept;
}

void lifecycle_hub::remove(std::shared_ptr<hook> const& h) noexcept
{
    hook gone;
    std::lock_guard lock(mutex_);
    std::erase(hooks_, h);
    gone.swap(*h);
    heard_.store(!hooks_.empty(), std::memory_order_relaxed);
}

} // namespace detail

lifecycle_subscription::lifecycle_subscription(std::shared_ptr<detail::lifecycle_hub> hub,
                                               detail::lifecycle_hub::hook h)
    : hub_(std::move(hub))
    , hook_(hub_->add(std::move(h)))
{
}

lifecycle_subscription::~lifecycle_subscription()
{
    if (hub_) hub_->remove(hook_);
}

} // namespace plait
