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

/// The input of a product: `rows` tokens by `cols` features, row-major, in F32, or quantised per row and block of 32:
/// value = scale * q8. `sums` is scale * (sum of the block's q8), which the minima and offsets of the 4-bit formats
/// need. Pointers that an operation does not want are null. Does not own its memory; all pointers are 64-byte aligned,
/// but those of a slice of columns, which a product takes and a norm makes and nothing else does.
struct activation_view {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    float* f32 = nullptr;
    std::int8_t* q8 = nullptr;
    float* scales = nullptr; ///< rows x cols/32
    float* sums = nullptr;   ///< rows x cols/32
    /// Of a slice: features from a row to the next, a multiple of 32 where `q8` is one; 0: cols.
    std::int64_t stride = 0;

    std::int64_t row_features() const noexcept { return stride != 0 ? stride : cols; }
};

/// Columns first … first + cols of `x`, both multiples of 32.
constexpr activation_view columns(activation_view x, std::int64_t first, std::int64_t cols) noexcept
{
    if (x.stride == 0) x.stride = x.cols;
    x.cols = cols;
    if (x.f32 != nullptr) x.f32 += first;
    if (x.q8 != nullptr) x.q8 += first;
    if (x.scales != nullptr) x.scales += first / block_columns;
    if (x.sums != nullptr) x.sums += first / block_columns;
    return x;
}

} // namespace plait
