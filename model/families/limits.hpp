#pragma once

#include <cstdint>

namespace plait {

/// A position is kept exactly by F32, in which RoPE multiplies it, up to this many.
inline constexpr std::int64_t max_context = std::int64_t{1} << 24;
/// No dimension of a published model comes near; below it every product of two dimensions is exact in 64 bits.
inline constexpr std::int64_t max_dimension = std::int64_t{1} << 30;
// What a header states before any tensor proves it is made room for only below these; published models have at most
// 576, 512, 126 and 1.
inline constexpr std::int64_t max_head_dim = 4096;
inline constexpr std::int64_t max_experts = 1024;
inline constexpr std::int64_t max_layers = 1024;
inline constexpr std::int64_t max_layers_ahead = 64; ///< that guess tokens ahead

} // namespace plait
