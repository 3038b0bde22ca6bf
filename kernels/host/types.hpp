#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {

/// How a weight matrix is stored. The block formats are those of GGUF; q is a value as the file has it. Blocks have 32
/// columns; those of the K formats and iq4_xs have 256, with a scale s (and a minimum m) for each 16 or 32 of them.
enum class weight_format : std::uint8_t {
    f32,
    f16,
    bf16,
    q4_0,   ///< w = d * (q - 8), q in 0..15, d in F16
    q4_1,   ///< w = d * q + m, q in 0..15, d and m in F16
    q5_0,   ///< w = d * (q - 16), q in 0..31, d in F16
    q5_1,   ///< w = d * q + m, q in 0..31, d and m in F16
    q8_0,   ///< w = d * q, q in -127..127, d in F16
    q2_k,   ///< w = d * s * q - dmin * m, q in 0..3, s and m in 0..15 for each 16 columns, d and dmin in F16
    q3_k,   ///< w = d * s * (q - 4), q in 0..7, s in -32..31 for each 16 columns, d in F16
    q4_k,   ///< w = d * s * q - dmin * m, q in 0..15, s and m in 0..63 for each 32 columns, d and dmin in F16
    q5_k,   ///< as q4_k, q in 0..31
    q6_k,   ///< w = d * s * (q - 32), q in 0..63, s in -128..127 for each 16 columns, d in F16
    iq4_nl, ///< w = d * v[q], v a table of 16 numbers from -127 to 113, d in F16
    iq4_xs, ///< w = d * s * v[q], v as iq4_nl's, s in -32..31 for each 32 columns, d in F16
    mxfp4,  ///< w = 2^(e - 128) * v[q], v = 0, 1, 2, 3, 4, 6, 8, 12 and their negatives: OCP's FP4 with shared exponent
            ///< e
};

inline constexpr int weight_format_count = 16;

std::string_view name(weight_format format) noexcept;

/// True where a product takes its activations quantised to 8 bits (`activation_view::q8`), false where it takes F32.
constexpr bool takes_q8(weight_format format) noexcept
{
    return format > weight_format::bf16;
}

/// Columns of a block of activations. A matrix of a block format has a multiple of this many columns.
inline constexpr std::int64_t block_columns = 32;

/// Columns of a block of weights: a matrix, and a part of one that is cut by columns, has a multiple of them.
constexpr std::int64_t columns_of_block(weight_format format) noexcept
{
    switch (format) {
    case weight_format::f32:
    case weight_format::f16:
    case weight_format::bf16:
        return 1;
    case weight_format::q2_k:
    case weight_format::q3_k:
    case weight_format::q4_k:
    case weight_format::q5_k:
    case weight_format::q6_k:
    case weight_format::iq4_xs:
        return 256;
    default:
        return block_columns;
    }
}

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
/// value = scale * q8. `sums` is scale * (sum of the block's q8), which the minima of some formats need. Pointers that
/// an operation does not want are null. Does not own its memory; all pointers are 64-byte aligned, but those of a slice
/// of columns, which a product takes and a norm makes and nothing else does.
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
