// The products in plain C++: their definition. Inner loops run over the 16 rows of a panel, so that a compiler can
// vectorise them for whatever the target has.

#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

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

/// The values of 32 columns as they are multiplied, unsigned: [group of four columns][row][column].
template<weight_format Format>
void unsigned_values(std::byte const* from, std::uint8_t* values) noexcept
{
    static constexpr auto form = layout_of(Format);
    constexpr int low_mask = (1 << form.low_bits) - 1, high_mask = (1 << form.high_bits) - 1;
    auto high = from + 64 * form.low_bits;
    for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 64; ++i) {
            // A line has 8 / bits groups.
            auto value = static_cast<int>(from[j * form.low_bits / 8 * 64 + i]) >> j * form.low_bits % 8 & low_mask;
            if constexpr (form.high_bits != 0)
                value |= (static_cast<int>(high[j * form.high_bits / 8 * 64 + i]) >> j * form.high_bits % 8 & high_mask)
                         << form.low_bits;
            if constexpr (form.codebook != nullptr) value = form.codebook[value] + form.offset;
            values[j * 64 + i] = static_cast<std::uint8_t>(value);
        }
}

/// Scales and minima of a panel's rows for the runs of 32 columns.
struct run_scales {
    float d[2][lanes];
    float m[2][lanes];
};

/// Of columns 32 b and up of a block.
template<weight_format Format>
void read_scales(std::byte const* block, int b, run_scales& to) noexcept
{
    static constexpr auto form = layout_of(Format);
    constexpr int runs = form.runs_of_32();
    for (int run = 0; run < runs; ++run)
        for (int r = 0; r < lanes; ++r) {
            auto& d = to.d[run][r];
            auto& m = to.m[run][r];
            if constexpr (form.scales == block_scales::power) {
                d = e8m0_half_to_f32(static_cast<std::uint8_t>(block[form.d_at() + r]));
                continue;
            }
            d = f16_to_f32(load<std::uint16_t>(block + form.d_at() + r * 2));
            if constexpr (form.minima) m = f16_to_f32(load<std::uint16_t>(block + form.m_at() + r * 2));
            auto at = (b * runs + run) * lanes + r;
            if constexpr (form.scales == block_scales::bytes) {
                d *= static_cast<float>(static_cast<std::int8_t>(block[form.scales_at() + at]));
                if constexpr (form.minima) m = -(m * static_cast<float>(block[form.minima_at() + at]));
            } else if constexpr (form.scales == block_scales::nibbles) {
                auto both = static_cast<int>(block[form.scales_at() + at]);
                d *= static_cast<float>(both & 15);
                m = -(m * static_cast<float>(both >> 4));
            }
        }
}

template<weight_format Format>
void multiply_blocks(tile_args const& a) noexcept
{
    static constexpr auto form = layout_of(Format);
    constexpr int runs = form.runs_of_32(), value_bytes = form.value_bytes(), bytes = form.panel_bytes();
    constexpr bool bias_is_offset = form.offset != 0;
    auto tokens = a.x.tokens;
    auto block = a.panels;
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        float acc[most_tile][lanes] = {};
        for (std::int64_t column = 0; column < a.cols; column += form.columns, block += bytes)
            for (int b = 0; b < form.columns / 32; ++b) {
                std::uint8_t values[512];
                run_scales scales;
                unsigned_values<Format>(block + b * value_bytes, values);
                read_scales<Format>(block, b, scales);
                for (int t = 0; t < tokens; ++t) {
                    auto at = (column / block_columns + b) * tokens + t;
                    auto q = a.x.q8 + at * block_columns;
                    std::int32_t sum[2][lanes];
                    for (int run = 0; run < runs; ++run)
                        for (int r = 0; r < lanes; ++r)
                            sum[run][r] = bias_is_offset ? a.x.bias[at * runs + run] : 0;
                    for (int j = 0; j < 8; ++j)
                        for (int r = 0; r < lanes; ++r)
                            for (int c = 0; c < 4; ++c)
                                sum[j * runs / 8][r] += values[j * 64 + r * 4 + c] * q[j * 4 + c];
                    for (int r = 0; r < lanes; ++r) {
                        auto& to = acc[t][r];
                        if constexpr (runs == 1) {
                            to = std::fma(static_cast<float>(sum[0][r]), scales.d[0][r] * a.x.scales[at], to);
                            if constexpr (form.minima) to = std::fma(scales.m[0][r], a.x.sums[at], to);
                        } else {
                            auto u = static_cast<float>(sum[0][r]) * scales.d[0][r];
                            u = std::fma(static_cast<float>(sum[1][r]), scales.d[1][r], u);
                            if constexpr (form.minima)
                                for (int run = 0; run < runs; ++run)
                                    u = std::fma(scales.m[run][r], static_cast<float>(a.x.bias[at * runs + run]), u);
                            to = std::fma(u, a.x.scales[at], to);
                        }
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
    constexpr auto bytes = Format == weight_format::f32 ? 64 : 32;
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

void arrange(activation_view const& x, std::int64_t const* rows, int tokens, int factor, int runs,
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
            if (to.bias == nullptr) continue;
            auto const columns = 32 / runs;
            for (int run = 0; run < runs; ++run) {
                std::int32_t sum = 0;
                for (int i = 0; i < columns; ++i)
                    sum += q[run * columns + i];
                to.bias[at * runs + run] = factor * sum;
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

template<weight_format Format>
void multiply(tile_args const& a) noexcept
{
    if constexpr (takes_q8(Format))
        multiply_blocks<Format>(a);
    else
        multiply_floats<Format>(a);
}

constexpr int tile_of(weight_format) noexcept
{
    return most_tile;
}

template<int... F>
constexpr product_kernels make_kernels(std::integer_sequence<int, F...>) noexcept
{
    return {{tile_of(static_cast<weight_format>(F))...},
            {multiply<static_cast<weight_format>(F)>...},
            arrange,
            quantise_row,
            scalar::gate,
            scalar::activate};
}

constexpr auto kernels = make_kernels(std::make_integer_sequence<int, weight_format_count>());

} // namespace

product_kernels const& scalar_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
