#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {

/// How a weight matrix is stored. The block formats are those of GGUF: 32 columns a block.
enum class weight_format : std::uint8_t {
    f32,
    f16,
    bf16,
    q4_0, ///< w = d * (q - 8), q in 0..15, d in F16
    q4_1, ///< w = d * q + m, q in 0..15, d and m in F16
    q8_0, ///< w = d * q, q in -127..127, d in F16
};

std::string_view name(weight_format format) noexcept;

/// True where a product takes its activations quantised to 8 bits (`activation_view::q8`), false where it takes F32.
constexpr bool takes_q8(weight_format format) noexcept
{
    return format == weight_format::q4_0 || format == weight_format::q4_1 || format == weight_format::q8_0;
}

/// Columns of a block: a matrix of a block format has a multiple of this many columns.
inline constexpr std::int64_t block_columns = 32;
/// Rows of a panel (see host/pack.hpp).
inline constexpr std::int64_t panel_rows = 16;

/// A weight matrix of `rows` outputs by `cols` inputs, repacked in panels of 16 rows. Does not own its memory.
struct weight_view {
    weight_format format = weight_format::f32;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::byte const* panels = nullptr; ///< 64-byte aligned, packed_bytes(format, rows, cols) bytes
};

/// The input of a product: `rows` tokens by `cols` features, row-major and contiguous, in F32, or quantised per row and
/// block of 32: value = scale * q8. `sums` is scale * (sum of the block's q8), which the minima and offsets of the
/// 4-bit formats need. Pointers that an operation does not want are null. Does not own its memory; all pointers are
/// 64-byte aligned.
struct activation_view {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    float* f32 = nullptr;
    std::int8_t* q8 = nullptr;
    float* scales = nullptr; ///< rows x cols/32
    float* sums = nullptr;   ///< rows x cols/32
};

} // namespace plait
