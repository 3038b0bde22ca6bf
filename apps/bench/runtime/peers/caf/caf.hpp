#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <string>

/// The workloads on CAF: event-based actors, typed where they answer, `request(...).then(...)` for asks.
namespace plait::bench::with_caf {

/// Of CAF: "0.17.6".
std::string version();

sample ask_beside(std::int64_t n);
/// Two workers that poll and never sleep. Where the actors run is CAF's choice, as it is for its user.
sample ask_across(std::int64_t n);
/// Two actors with a thread each, which sleep.
sample ask_asleep(std::int64_t n);
sample spawn_and_stop(std::int64_t n);
/// Its mailboxes have no bound.
sample flood(std::int64_t n);
sample tree_of_actors(std::int64_t n);
/// Bytes of an idle actor that holds a number.
sample idle_actor(std::int64_t n);

} // namespace plait::bench::with_caf
