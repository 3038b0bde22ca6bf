#include <plait/streams/gpu.hpp>

namespace plait {

gpu::gpu(event_loop& home, std::unique_ptr<device> owned)
    : home_(home)
    , device_(std::move(owned))
{
    // An actor is made on its creator's thread, but a loop takes pollers on its own. The loop runs this before any
    // message to the actor, and so before the actor can end.
    attach_.self = this;
    attach_.run = [](work& w) noexcept {
        auto* self = static_cast<attach_work&>(w).self;
        self->home_.attach(*self);
    };
    home_.post(attach_);
}

gpu::~gpu()
{
    home_.detach(*this);
}

} // namespace plait
