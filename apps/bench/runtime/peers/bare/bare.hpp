#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

/// What nothing can beat by much: coroutines, threads and system calls by hand, with nothing around them.
namespace plait::bench::bare {

/// A coroutine awaits another one by symmetric transfer; frames come from a free list, exceptions are kept.
sample await_child(std::int64_t n);
/// Two threads hand a cache line to and fro, each on a processor of its own; one operation is one round trip.
sample line_round_trip(std::int64_t n);
/// Such threads wake each other with a futex; one operation is one round trip, both sleep.
sample futex_round_trip(std::int64_t n);

} // namespace plait::bench::bare
