#include <plait/streams/gpu.hpp>

namespace plait {

gpu::gpu(event_loop& home, std::unique_ptr<device> owned)
    : home_(home)
    , device_(std::move(owned))
{
    home_.attach(*this);
}

gpu::~gpu()
{
    home_.detach(*this);
}

} // namespace plait
