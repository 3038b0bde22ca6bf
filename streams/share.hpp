#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace plait {

/// One worker's part of a host operation. An operation runs on all workers of the compute pool at once: worker `index`
/// of `count` computes its part, and nothing waits inside. What an operation computes never depends on `count`.
struct share {
    unsigned index = 0;
    unsigned count = 1;
    std::span<std::byte> scratch; ///< this worker's own, 64-byte aligned, at least 1 MiB

    /// The half-open range of `0 … items` that falls to this worker, in whole multiples of `grain`.
    std::pair<std::int64_t, std::int64_t> range(std::int64_t items, std::int64_t grain = 1) const noexcept
    {
        auto grains = (items + grain - 1) / grain;
        auto first = grains * index / count * grain;
        auto last = grains * (index + 1) / count * grain;
        return {first < items ? first : items, last < items ? last : items};
    }
};

} // namespace plait
