#pragma once

#include <cstdint>

namespace plait::host {

/// Bytes that this process may still take without swapping: what the system has available, or what is left of its
/// cgroup's limit where that is less. (Linux: /proc/meminfo, cgroup v2 memory.max.)
std::int64_t available_memory();

} // namespace plait::host
