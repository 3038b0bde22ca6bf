#pragma once

#include <cstdint>
#include <numeric>

/// Skynet: a tree in which each node starts ten, down to leaves that give their numbers, which are summed on the way
/// up.
namespace plait::bench {

constexpr std::int64_t branches = 10;

/// The greatest power of ten that is not above n.
constexpr std::int64_t leaves_of(std::int64_t n) noexcept
{
    std::int64_t out = 1;
    while (out * branches <= n)
        out *= branches;
    return out;
}

template<class Range>
std::int64_t total(Range const& sums)
{
    return std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
}

} // namespace plait::bench
