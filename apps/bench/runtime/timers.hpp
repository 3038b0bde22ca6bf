#pragma once

#include <plait/actors/time/clock.hpp>
#include <plait/apps/bench/runtime/meter.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace plait::bench {

/// When timer number i is due, within a millisecond: all different, in no order.
inline duration spread(std::int64_t i) noexcept
{
    auto const mixed = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u >> 20;
    return duration(static_cast<std::int64_t>(mixed % 1'000'000));
}

/// What `attempt` gives, called with longer and longer times until all n timers were armed within it.
template<class Attempt>
sample armed_in_time(std::int64_t n, Attempt attempt)
{
    auto time = duration(std::chrono::milliseconds(10)) + duration(n * 2'000);
    for (;;) {
        std::optional<sample> out = attempt(time);
        if (out) return *out;
        time *= 2;
    }
}

} // namespace plait::bench
