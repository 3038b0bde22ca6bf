#pragma once

#include <plait/streams/host/host_group.hpp>
#include <plait/streams/sim/sim_device.hpp>

namespace plait {

/// Devices that an engine simulates instead of running on the host's own: a policy is tried on them, in a
/// `simulation`, as if they were there.
struct simulated_devices {
    sim::sim_options each; ///< of every device
    host::host_link link;  ///< between two of them
};

} // namespace plait
