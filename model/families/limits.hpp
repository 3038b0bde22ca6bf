#pragma once

#include <cstdint>

namespace plait {

/// A position is kept exactly by F32, in which RoPE multiplies it, up to this many.
inline constexpr std::int64_t max_context = std::int64_t{1} << 24;
/// No dimension of a published model comes near; below it every product of two dimensions is exact in 64 bits.
inline constexpr std::int64_t max_dimension = std::int64_t{1} << 30;

} // namespace plait
