#pragma once

#include <plait/actors/time/clock.hpp>
#include <plait/streams/share.hpp>

#include <array>
#include <cstdint>

namespace plait::bench {

/// A kernel that takes its time, over values that stay in the cache. It counts itself.
struct labour {
    using values = std::array<std::uint32_t, 1024>;

    values* at = nullptr;
    std::int64_t repeats = 0;
    std::int64_t* done = nullptr;
};
void run_labour(labour const& args, share part);

/// How often it is to repeat to take about as long. Measured when it is first asked for.
std::int64_t repeats_for(duration time);

} // namespace plait::bench
