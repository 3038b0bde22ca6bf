#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <string>

/// The workloads on oneTBB.
namespace plait::bench::with_tbb {

/// Of oneTBB: "2021.8".
std::string version();

/// Task groups, on one thread.
sample tree_of_tasks(std::int64_t n);

} // namespace plait::bench::with_tbb
