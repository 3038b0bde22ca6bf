#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace plait {

struct failure;

/// Something that has happened to an actor.
struct lifecycle_event {
    enum class kind : std::uint8_t {
        spawned,
        failed,    ///< a method that it was told threw; with a supervisor it is paused until it is restarted
        restarted, ///< its object was made again
        stopping,  ///< it takes no more messages
        gone,      ///< its object has been destroyed
    };
    kind what;
    std::string_view actor;         ///< its type
    std::uint64_t id;               ///< its number among the runtime's actors
    failure const* cause = nullptr; ///< of `failed`
};

namespace detail {

/// Those who want to hear what happens to a runtime's actors.
class lifecycle_hub {
public:
    using hook = std::function<void(lifecycle_event const&)>;

    /// Whether anybody listens.
    bool heard() const noexcept { return heard_.load(std::memory_order_relaxed); }
    void tell(lifecycle_event const& event) noexcept;

    struct listener {
        explicit listener(hook h)
            : hears(std::move(h))
        {
        }
        hook const hears;
        bool wanted = true;
    };
    std::shared_ptr<listener> add(hook h);
    void remove(std::shared_ptr<listener> const& l) noexcept;

private:
    std::recursive_mutex mutex_; ///< held while hooks run; one may spawn an actor, which tells again
    std::vector<std::shared_ptr<listener>> listeners_;
    std::atomic<bool> heard_{false};
};

} // namespace detail

/// Ends a subscription to lifecycle events when it goes: after that the hook does not run and is not running on another
/// thread. May outlive the runtime.
class [[nodiscard]] lifecycle_subscription {
public:
    lifecycle_subscription() noexcept = default;
    lifecycle_subscription(std::shared_ptr<detail::lifecycle_hub> hub, detail::lifecycle_hub::hook h);
    lifecycle_subscription(lifecycle_subscription&& other) noexcept = default;
    lifecycle_subscription& operator=(lifecycle_subscription&& other) noexcept
    {
        std::swap(hub_, other.hub_);
        std::swap(listener_, other.listener_);
        return *this;
    }
    ~lifecycle_subscription();

private:
    std::shared_ptr<detail::lifecycle_hub> hub_;
    std::shared_ptr<detail::lifecycle_hub::listener> listener_;
};

} // namespace plait
