#pragma once

#include <plait/kernels/host/types.hpp>

#include <cstddef>

namespace plait::host {

/// One row of a block format, in a file (its blocks one after the other) and in a panel (place `lane` of the panel that
/// starts at `panel`). Any bytes are a valid block: what is no number becomes what arithmetic makes of it.
struct block_rows {
    void (*pack)(std::size_t blocks, std::byte const* file, std::byte* panel, std::size_t lane);
    /// Weights of zero.
    void (*clear)(std::size_t blocks, std::byte* panel, std::size_t lane);
    /// Writes the weights of a row of a file to every `stride`-th float.
    void (*dequantise)(std::size_t blocks, std::byte const* file, float* out, std::size_t stride);
    void (*unpack)(std::size_t blocks, std::byte const* panel, std::size_t lane, float* out);
};

/// Of a format that takes_q8.
block_rows const& rows_of_blocks(weight_format format) noexcept;

} // namespace plait::host
