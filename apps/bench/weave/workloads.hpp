#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <filesystem>

/// What `plait-bench weave` measures. Each workload makes what it needs, warms up and checks what came out.
namespace plait::bench::weaving {

/// n steps of two flows on a host device of one worker; in each, every flow has 60 parts, of four kernels of 5 µs, and
/// passes the turn after each. Nanoseconds of a part, woven or issued by a hand-written loop in the same order.
sample woven(std::int64_t n);
sample by_hand(std::int64_t n);

/// n steps of both kinds by turns, of one kernel of next to nothing a part: what a turn costs, the median of the steps'
/// differences.
sample a_turn(std::int64_t n);

/// Two ranks, each on a processor of its own, compute two halves of a step, in parts a quarter longer than a link;
/// after each part they sum over that link. Per cent of what could be hidden that was: of the difference between one
/// half after the other and computing alone, but for the last sum; of the best of four of each. n: the parts of a half.
sample overlap(duration link, std::int64_t n);

/// n sums of that many floats, one after the other, over so many host ranks that share a pool of as many workers as
/// there are processors; microseconds of one.
sample all_reduce(int ranks, std::int64_t floats, std::int64_t n);

/// MiB that a rank keeps resident, when an engine with as little as possible beside its weights runs on so many.
sample resident_of_rank(std::filesystem::path const& model, std::int32_t ranks);

} // namespace plait::bench::weaving
