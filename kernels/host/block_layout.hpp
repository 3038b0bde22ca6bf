#pragma once

#include <plait/kernels/host/types.hpp>

#include <cstdint>

/// What the blocks of the quantised formats hold, and where a panel keeps it (pack.hpp shows the bytes). Everything is
/// static or a constant: a file compiled for a wider instruction set must never lend its copy to the others.
namespace plait::host {

/// How the scales of a block are kept.
enum class block_scales : std::uint8_t {
    one,     ///< d for the whole block, in F16, and a minimum in F16 where the format has them
    power,   ///< a byte e for the whole block: 2^(e - 128)
    bytes,   ///< a byte for each run of columns, another for its minimum, and d and dmin in F16 for the whole block
    nibbles, ///< the same, scale and minimum in the halves of one byte
};

struct block_layout {
    int columns;     ///< of a block
    int file_bytes;  ///< of a block of one row
    int low_bits;    ///< of a value, in the first plane: 2, 4 or 8
    int high_bits;   ///< the others, in a plane of their own: 0, 1 or 2
    int offset;      ///< a value as it is multiplied, unsigned, less the value it stands for
    int run_columns; ///< columns that share a scale: 16 or 32
    block_scales scales;
    bool minima;
    std::int8_t const* codebook = nullptr; ///< what the 16 values stand for

    constexpr int runs() const { return columns / run_columns; }
    /// Runs in 32 columns.
    constexpr int runs_of_32() const { return 32 / run_columns; }
    /// Bytes of 32 columns of a panel's values: 16 rows, 64 bytes for each bit.
    constexpr int value_bytes() const { return 64 * (low_bits + high_bits); }

    // From the start of a panel's block.
    constexpr int scales_at() const { return columns / 32 * value_bytes(); }
    constexpr int minima_at() const { return scales_at() + runs() * panel_lanes; } ///< of `bytes`
    constexpr int d_at() const
    {
        if (scales == block_scales::bytes && minima) return minima_at() + runs() * panel_lanes;
        if (scales == block_scales::bytes || scales == block_scales::nibbles) return minima_at();
        return scales_at();
    }
    constexpr int m_at() const { return d_at() + 2 * panel_lanes; }
    constexpr int panel_bytes() const
    {
        if (scales == block_scales::power) return d_at() + panel_lanes;
        return minima ? m_at() + 2 * panel_lanes : m_at();
    }

    static constexpr int panel_lanes = static_cast<int>(panel_rows);
};

/// The values of IQ4_NL and IQ4_XS. Source: kvalues_iq4nl in ggml-common.h.
static constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

/// FP4 (E2M1), doubled. Source: OCP Microscaling Formats (MX) Specification 1.0.
static constexpr std::int8_t fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// The layout of a format that takes_q8.
static constexpr block_layout layout_of(weight_format format) noexcept
{
    switch (format) {
    case weight_format::q4_0:
        return {32, 18, 4, 0, 8, 32, block_scales::one, false};
    case weight_format::q4_1:
        return {32, 20, 4, 0, 0, 32, block_scales::one, true};
    case weight_format::q5_0:
        return {32, 22, 4, 1, 16, 32, block_scales::one, false};
    case weight_format::q5_1:
        return {32, 24, 4, 1, 0, 32, block_scales::one, true};
    case weight_format::q8_0:
        return {32, 34, 8, 0, 128, 32, block_scales::one, false};
    case weight_format::q2_k:
        return {256, 84, 2, 0, 0, 16, block_scales::nibbles, true};
    case weight_format::q3_k:
        return {256, 110, 2, 1, 4, 16, block_scales::bytes, false};
    case weight_format::q4_k:
        return {256, 144, 4, 0, 0, 32, block_scales::bytes, true};
    case weight_format::q5_k:
        return {256, 176, 4, 1, 0, 32, block_scales::bytes, true};
    case weight_format::q6_k:
        return {256, 210, 4, 2, 32, 16, block_scales::bytes, false};
    case weight_format::iq4_nl:
        return {32, 18, 4, 0, 128, 32, block_scales::one, false, iq4_values};
    case weight_format::iq4_xs:
        return {256, 136, 4, 0, 128, 32, block_scales::bytes, false, iq4_values};
    case weight_format::mxfp4:
        return {32, 17, 4, 0, 12, 32, block_scales::power, false, fp4_values};
    case weight_format::f32:
    case weight_format::f16:
    case weight_format::bf16:
        break;
    }
    return {};
}

} // namespace plait::host
