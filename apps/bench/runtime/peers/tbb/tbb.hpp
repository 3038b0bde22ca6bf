#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

/// The workloads on oneTBB.
namespace plait::bench::with_tbb {

/// Task groups, on one thread.
sample tree_of_tasks(std::int64_t n);

} // namespace plait::bench::with_tbb
