#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <cstddef>

/// The naive way: std::thread, std::mutex, std::condition_variable and std::barrier.
namespace plait::bench::with_threads {

/// A request and its answer through two mutex-protected slots; both threads sleep, each on its
/// processor.
sample ask_asleep(std::int64_t n);
/// Starts a thread and joins it.
sample spawn_and_stop(std::int64_t n);
/// A bounded queue between 4 sending threads and 4 receiving ones.
sample many_to_many_across(std::int64_t n);
/// So many threads, each with an array of floats, meet at a barrier, sum a part of it over all for everybody, and meet
/// again; microseconds of one such sum.
sample all_reduce(std::size_t ranks, std::int64_t floats, std::int64_t n);

} // namespace plait::bench::with_threads
