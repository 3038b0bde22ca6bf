#include <algorithm>
#include <utility>

#include <plait/streams/host/doorbell.hpp>

namespace plait::host {

doorbell::doorbell()
{
    call_.run = [](work& posted) noexcept {
        // The loop polls its devices after its works: to have run is all that there is to do.
        auto const self = static_cast<call&>(posted).self;
        std::lock_guard lock(self->mutex_);
        self->call_.self = nullptr;
    };
}

doorbell::~doorbell() = default;

void doorbell::open(event_loop& home) noexcept
{
    std::lock_guard lock(mutex_);
    home_ = &home;
}

void doorbell::close() noexcept
{
    std::lock_guard lock(mutex_);
    home_ = nullptr;
}

bool doorbell::is_open() const noexcept
{
    std::lock_guard lock(mutex_);
    return home_ != nullptr;
}

void doorbell::ring() noexcept
{
    std::lock_guard lock(mutex_);
    post();
}

void doorbell::fail(std::exception_ptr why) noexcept
{
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(why);
    failed_.store(true, std::memory_order_release);
    post();
}

std::exception_ptr doorbell::failure() noexcept
{
    if (!failed_.load(std::memory_order_acquire)) return nullptr;
    std::lock_guard lock(mutex_);
    failed_.store(false, std::memory_order_relaxed);
    return failure_;
}

void doorbell::add(std::weak_ptr<listener> group)
{
    std::erase_if(listeners_, [](auto const& l) { return l.expired(); });
    listeners_.push_back(std::move(group));
}

void doorbell::tell_failure(std::exception_ptr const& why) noexcept
{
    for (auto const& listener : std::exchange(listeners_, {}))
        if (auto const group = listener.lock()) group->device_failed(*this, why);
}

bool doorbell::unheard() const noexcept
{
    return std::ranges::all_of(listeners_, [](auto const& l) { return l.expired(); });
}

/// Under the mutex, so that the loop does not end meanwhile: a device closes before its loop may.
void doorbell::post() noexcept
{
    if (home_ == nullptr || call_.self) return;
    call_.self = shared_from_this();
    home_->post(call_);
}

} // namespace plait::host
