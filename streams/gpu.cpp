#include <utility>

#include <plait/streams/gpu.hpp>

namespace plait {

gpu::gpu(event_loop& home, std::unique_ptr<device> owned)
    : home_(home)
    , device_(std::move(owned))
{
}

gpu::~gpu()
{
    if (attached_) home_.detach(*this);
}

device& gpu::driven()
{
    // Not in the constructor: an actor is made on its creator's thread, and its loop must not poll what is half made.
    if (!std::exchange(attached_, true)) {
        device_->driven_by(home_);
        home_.attach(*this);
    }
    return *device_;
}

} // namespace plait
