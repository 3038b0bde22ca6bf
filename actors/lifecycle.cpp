#include <plait/actors/lifecycle.hpp>

namespace plait {

namespace detail {

void lifecycle_hub::tell(lifecycle_event const& event) noexcept
{
    std::lock_guard lock(mutex_);
    // A copy, which keeps each as long as it runs, and each only if it is still wanted: a hook may subscribe, and end
    // its own subscription.
    auto const now = listeners_;
    for (auto const& l : now) {
        if (l->wanted) l->hears(event);
    }
}

std::shared_ptr<lifecycle_hub::listener> lifecycle_hub::add(hook h)
{
    auto kept = std::make_shared<listener>(std::move(h));
    std::lock_guard lock(mutex_);
    listeners_.push_back(kept);
    heard_.store(true, std::memory_order_relaxed);
    return kept;
}

void lifecycle_hub::remove(std::shared_ptr<listener> const& l) noexcept
{
    std::lock_guard lock(mutex_);
    l->wanted = false;
    std::erase(listeners_, l);
    heard_.store(!listeners_.empty(), std::memory_order_relaxed);
}

} // namespace detail

lifecycle_subscription::lifecycle_subscription(std::shared_ptr<detail::lifecycle_hub> hub,
                                               detail::lifecycle_hub::hook h)
    : hub_(std::move(hub))
    , listener_(hub_->add(std::move(h)))
{
}

lifecycle_subscription::~lifecycle_subscription()
{
    if (hub_) hub_->remove(listener_);
}

} // namespace plait
