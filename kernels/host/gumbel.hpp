#pragma once

#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/philox.hpp>

namespace plait::host {

/// A standard Gumbel number from 23 random bits: -log(-log(u)), u = (bits + 1/2) * 2^-23. Between -2.82 and 16.64.
static inline float gumbel(std::uint32_t bits) noexcept
{
    float u = std::fma(static_cast<float>(bits >> 9), 0x1p-23f, 0x1p-24f);
    return -log(-log(u));
}

/// No Gumbel number is larger.
inline constexpr float largest_gumbel = 16.7f;

/// A token's weight in units of 2^-40: the addition of 1.5 * 2^12 in F64 rounds to them.
static inline std::int64_t weight_units(float weight) noexcept
{
    constexpr double rounder = 0x1.8p12;
    return std::bit_cast<std::int64_t>(static_cast<double>(weight) + rounder) - std::bit_cast<std::int64_t>(rounder);
}

} // namespace plait::host
