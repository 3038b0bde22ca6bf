#pragma once

#include <plait/streams/host/group_core.hpp>

#include <cstddef>
#include <vector>

namespace plait::host {

/// A step in a circle of waits: `waiting` needs a side whose stream is held up by `held_by`.
struct wait_step {
    group_round* waiting;
    std::size_t side; ///< of `waiting`: it was put and its stream has not come to it
    group_round* held_by;
};

/// The circle through `r`, or nothing. Streams go in order, so a collective can't be over before the one that a stream
/// of it waits in; when that goes round in a circle, none ever is. Each edge comes into being when a side is put or a
/// stream arrives, and it begins or ends at that very collective: looking there, each time, finds every circle.
std::vector<wait_step> find_wait_circle(host_fabric const& all, group_round& r);

/// What waits for what, with the places.
std::string text_of(std::vector<wait_step> const& circle);

} // namespace plait::host
