// The products in plain C++: their definition. Inner loops run over the 16 rows of a panel, so that a compiler can
// vectorise them for whatever the target has.

#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace plait::host::detail {

namespace {

constexpr int lanes = 16;
constexpr int most_tile = 4;

template<class T>
T load(std::byte const* from) noexcept
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Makes outputs of the sums of a panel for one token (product_args), and stores them.
void finish(tile_args const& a, std::int64_t panel, int token, float const* acc) noexcept
{
    auto at = token * a.out_stride + panel * lanes;
    auto rows = a.rows - panel * lanes < lanes ? a.rows - panel * lanes : lanes;
    for (std::int64_t r = 0; r < rows; ++r) {
        auto value = a.bias ? acc[r] + a.bias[panel * lanes + r] : acc[r];
        value = a.scale * value;
        a.out[at + r] = a.residual ? a.residual_scale * a.residual[at + r] + value : value;
    }
}

template<weight_format Format>
constexpr std::int64_t unit_bytes = Format == weight_format::q4_0   ? 288
                                    : Format == weight_format::q4_1 ? 320
                                    : Format == weight_format::q8_0 ? 544
                                    : Format == weight_format::f32  ? 64
                                                                    : 32;

/// The 32 columns of a block as unsigned bytes, [group of four columns][row][column].
template<weight_format Format>
void stored_values(std::byte const* block, std::uint8_t* values) noexcept
{
    if constexpr (Format == weight_format::q8_0) {
        std::memcpy(values, block, 512);
    } else {
        for (int j = 0; j < 4; ++j)
            for (int i = 0; i < 64; ++i) {
                auto byte = static_cast<std::uint8_t>(block[j * 64 + i]);
                values[j * 128 + i] = byte & 15;
                values[j * 128 + 64 + i] = static_cast<std::uint8_t>(byte >> 4);
            }
    }
}

template<weight_format Format>
void multiply_blocks(tile_args const& a) noexcept
{
    constexpr auto bytes = unit_bytes<Format>;
    constexpr auto scales_at = Format == weight_format::q8_0 ? 512 : 256;
    auto blocks = a.cols / block_columns;
    auto tokens = a.x.tokens;
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        float acc[most_tile][lanes] = {};
        auto block = a.panels + p * blocks * bytes;
        for (std::int64_t b = 0; b < blocks; ++b, block += bytes) {
            std::uint8_t values[512];
            float d[lanes], m[lanes] = {};
            stored_values<Format>(block, values);
            for (int r = 0; r < lanes; ++r) {
                d[r] = f16_to_f32(load<std::uint16_t>(block + scales_at + r * 2));
                if constexpr (Format == weight_format::q4_1)
                    m[r] = f16_to_f32(load<std::uint16_t>(block + scales_at + 32 + r * 2));
            }
            for (int t = 0; t < tokens; ++t) {
                auto at = b * tokens + t;
                auto q = a.x.q8 + at * block_columns;
                std::int32_t sum[lanes];
                for (int r = 0; r < lanes; ++r)
                    sum[r] = Format == weight_format::q4_1 ? 0 : a.x.bias[at];
                for (int j = 0; j < 8; ++j)
                    for (int r = 0; r < lanes; ++r)
                        for (int c = 0; c < 4; ++c)
                            sum[r] += values[j * 64 + r * 4 + c] * q[j * 4 + c];
                for (int r = 0; r < lanes; ++r) {
                    acc[t][r] = std::fma(static_cast<float>(sum[r]), d[r] * a.x.scales[at], acc[t][r]);
                    if constexpr (Format == weight_format::q4_1) acc[t][r] = std::fma(m[r], a.x.sums[at], acc[t][r]);
                }
            }
        }
        for (int t = 0; t < tokens; ++t)
            finish(a, p, t, acc[t]);
    }
}

template<weight_format Format>
void multiply_floats(tile_args const& a) noexcept
{
    constexpr auto bytes = unit_bytes<Format>;
    auto tokens = a.x.tokens;
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        float acc[most_tile][lanes] = {};
        auto column = a.panels + p * a.cols * bytes;
        for (std::int64_t k = 0; k < a.cols; ++k, column += bytes) {
            float w[lanes];
            for (int r = 0; r < lanes; ++r) {
                if constexpr (Format == weight_format::f32) w[r] = load<float>(column + r * 4);
                if constexpr (Format == weight_format::f16) w[r] = f16_to_f32(load<std::uint16_t>(column + r * 2));
                if constexpr (Format == weight_format::bf16) w[r] = bf16_to_f32(load<std::uint16_t>(column + r * 2));
            }
            for (int t = 0; t < tokens; ++t) {
                auto x = a.x.f32[k * tokens + t];
                for (int r = 0; r < lanes; ++r)
                    acc[t][r] = std::fma(w[r], x, acc[t][r]);
            }
        }
        for (int t = 0; t < tokens; ++t)
            finish(a, p, t, acc[t]);
    }
}

void arrange(activation_view const& x, std::int64_t const* rows, int tokens, int offset,
             arrange_target const& to) noexcept
{
    auto blocks = x.cols / block_columns;
    auto row_blocks = x.row_features() / block_columns;
    for (int t = 0; t < tokens; ++t)
        for (std::int64_t b = 0; b < blocks; ++b) {
            auto from = rows[t] * row_blocks + b;
            auto at = b * tokens + t;
            auto q = x.q8 + from * block_columns;
            if (to.q8) std::memcpy(to.q8 + at * block_columns, q, block_columns);
            if (to.scales) to.scales[at] = x.scales[from];
            if (to.sums && x.sums) to.sums[at] = x.sums[from];
            if (to.bias) {
                std::int32_t sum = 0;
                for (int i = 0; i < block_columns; ++i)
                    sum += q[i];
                to.bias[at] = -offset * sum;
            }
        }
}

void quantise_row(float const* x, std::int64_t cols, std::int8_t* q8, float* scales, float* sums) noexcept
{
    constexpr float rounder = 12582912.0f; // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    for (std::int64_t b = 0; b < cols / block_columns; ++b, x += block_columns, q8 += block_columns) {
        // Magnitudes compare as integers; a NaN is above infinity.
        std::int32_t most = 0;
        for (int i = 0; i < block_columns; ++i) {
            auto magnitude = std::bit_cast<std::int32_t>(x[i]) & 0x7fffffff;
            most = most < magnitude ? magnitude : most;
        }
        auto amax = std::bit_cast<float>(most);
        if (!(amax >= quantise_smallest && amax < std::numeric_limits<float>::infinity())) {
            std::memset(q8, 0, block_columns);
            scales[b] = sums[b] = amax < quantise_smallest ? 0.0f : std::numeric_limits<float>::quiet_NaN();
            continue;
        }
        auto scale = amax / 127.0f;
        auto inverse = 1.0f / scale;
        std::int32_t sum = 0;
        for (int i = 0; i < block_columns; ++i) {
            auto q = std::bit_cast<std::int32_t>(x[i] * inverse + rounder) - std::bit_cast<std::int32_t>(rounder);
            q8[i] = static_cast<std::int8_t>(q);
            sum += q;
        }
        scales[b] = scale;
        sums[b] = scale * static_cast<float>(sum);
    }
}

constexpr product_kernels kernels = {{most_tile, most_tile, most_tile, most_tile, most_tile, most_tile},
                                     {multiply_floats<weight_format::f32>, multiply_floats<weight_format::f16>,
                                      multiply_floats<weight_format::bf16>, multiply_blocks<weight_format::q4_0>,
                                      multiply_blocks<weight_format::q4_1>, multiply_blocks<weight_format::q8_0>},
                                     arrange,
                                     quantise_row,
                                     scalar::gate,
                                     scalar::activate};

} // namespace

product_kernels const& scalar_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
