#pragma once

#include <cstdint>

namespace plait::detail {

/// Numbers that are the same everywhere. Source: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
class split_mix {
public:
    explicit split_mix(std::uint64_t seed) noexcept
        : state_(seed)
    {
    }
    std::uint64_t next() noexcept
    {
        auto z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }
    /// Below `n`, without the bias of a remainder.
    std::uint32_t below(std::uint32_t n) noexcept { return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32); }

private:
    std::uint64_t state_;
};

} // namespace plait::detail
