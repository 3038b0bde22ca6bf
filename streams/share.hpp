#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace plait {

/// A part of a host operation: part `index` of `count`. The workers of the compute pool take the parts as they come,
/// one may get several, and nothing waits inside one. What an operation computes never depends on `count`.
struct share {
    unsigned index = 0;
    unsigned count = 1;
    std::span<std::byte> scratch; ///< the worker's own, 64-byte aligned, at least 1 MiB

    /// The half-open range of `0 … items` that falls to this part, in whole multiples of `grain`.
    std::pair<std::int64_t, std::int64_t> range(std::int64_t items, std::int64_t grain = 1) const noexcept
    {
        auto grains = (items + grain - 1) / grain;
        auto first = grains * index / count * grain;
        auto last = grains * (index + 1) / count * grain;
        return {first < items ? first : items, last < items ? last : items};
    }
};

} // namespace plait
