#include <plait/actors/error.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

void buffer::used_by(ticket t)
{
    for (auto& use : uses_)
        if (use.where() == t.where() || use.over()) {
            use = t;
            return;
        }
    throw error(errc::invalid_argument, "buffer::used_by: tickets of more streams than a device has");
}

} // namespace plait
