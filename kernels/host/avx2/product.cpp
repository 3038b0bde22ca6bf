// The products for AVX2: a panel's 16 rows are two registers of eight.

#include <plait/kernels/host/product_kernels.hpp>

#include <immintrin.h>
#include <utility>

namespace plait::host::detail {

namespace {

constexpr int lanes = 8;
constexpr int most_tile = 4; // a fourth token of q4_0, with its bias, no longer fits the registers
constexpr int most_tile_f = 6;

inline __m256i load_bytes(std::byte const* from) noexcept
{
    return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from));
}

inline __m256 load_halves(std::byte const* from) noexcept
{
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
}

/// Four activations, to all lanes.
inline __m256i four(std::int8_t const* from) noexcept
{
    std::int32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return _mm256_set1_epi32(word);
}

inline void prefetch(std::byte const* from) noexcept
{
    _mm_prefetch(reinterpret_cast<char const*>(from), _MM_HINT_T0);
}

/// Makes outputs of eight sums (product_args) of a token, rows `row` and up, and stores those that are wanted.
inline void finish(tile_args const& a, int token, std::int64_t row, __m256 value) noexcept
{
    auto const rows = a.rows - row;
    if (rows <= 0) return;
    bool const whole = rows >= lanes;
    auto const mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(whole ? lanes : static_cast<int>(rows)),
                                         _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    auto load = [&](float const* from) { return whole ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask); };
    auto const at = token * a.out_stride + row;
    if (a.bias) value = _mm256_add_ps(value, load(a.bias + row));
    value = _mm256_mul_ps(_mm256_set1_ps(a.scale), value);
    if (a.residual)
        value = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(a.residual_scale), load(a.residual + at)), value);
    if (whole)
        _mm256_storeu_ps(a.out + at, value);
    else
        _mm256_maskstore_ps(a.out + at, mask, value);
}

/// How far ahead of their use weights are asked for: what memory delivers within its latency, and past a page's end,
/// where the processor's own prefetch stops.
constexpr int bytes_ahead = 5120;

/// Adds one token's products with four columns of eight rows to 32-bit sums, for 8-bit weights. vpmaddubsw saturates:
/// 255 * 127 * 2 is past 32767. So its unsigned operand is the weight's magnitude, at most 128 (as is -128's), and the
/// weight's sign goes to the activation: 128 * 127 * 2 fits.
inline __m256i add_products(__m256i sum, __m256i w, __m256i magnitude, std::int8_t const* q8) noexcept
{
    auto pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(four(q8), w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/// The exact sums of eight rows of a block (`half` 0 or 1 of the panel) with the 32 activations of each token. Weights
/// are taken a register at a time and used for all tokens: sixteen registers hold no block.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void dot(std::byte const* half, std::int8_t const* q8, __m256i (&sum)[Tokens]) noexcept
{
    for (auto& s : sum)
        s = _mm256_setzero_si256();
    if constexpr (Format == weight_format::q8_0) {
        auto const offset = _mm256_set1_epi8(-128);
        for (int j = 0; j < 8; ++j) {
            auto w = _mm256_xor_si256(load_bytes(half + j * 64), offset);
            auto magnitude = _mm256_abs_epi8(w);
            for (int t = 0; t < Tokens; ++t)
                sum[t] = add_products(sum[t], w, magnitude, q8 + t * block_columns + j * 4);
        }
    } else {
        // Eight times two products of at most 15 * 127 fit 16 bits.
        auto const low_halves = _mm256_set1_epi8(15);
        for (int j = 0; j < 4; ++j) {
            auto both = load_bytes(half + j * 64);
            auto low = _mm256_and_si256(both, low_halves);
            auto high = _mm256_and_si256(_mm256_srli_epi16(both, 4), low_halves);
            for (int t = 0; t < Tokens; ++t) {
                auto q = q8 + t * block_columns + j * 8;
                sum[t] = _mm256_add_epi16(sum[t], _mm256_maddubs_epi16(low, four(q)));
                sum[t] = _mm256_add_epi16(sum[t], _mm256_maddubs_epi16(high, four(q + 4)));
            }
        }
        for (auto& s : sum)
            s = _mm256_madd_epi16(s, _mm256_set1_epi16(1));
    }
}

template<weight_format Format, int Tokens>
void multiply_blocks(tile_args const& a) noexcept
{
    constexpr bool bytes8 = Format == weight_format::q8_0;
    constexpr bool minima = Format == weight_format::q4_1;
    constexpr int bytes = bytes8 ? 544 : minima ? 320 : 288;
    constexpr int scales_at = bytes8 ? 512 : 256;
    auto blocks = a.cols / block_columns;
    auto block = a.panels;
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        __m256 acc[2][Tokens];
        for (auto& row : acc)
            for (auto& sum : row)
                sum = _mm256_setzero_ps();
        auto q8 = a.x.q8;
        for (std::int64_t at = 0; at < blocks * Tokens; at += Tokens) {
            for (int line = 0; line < bytes; line += 64)
                prefetch(block + bytes_ahead + line);
            for (int half = 0; half < 2; ++half) {
                // Makes the second half load its activations again: kept for it, they would be spilled to the stack.
                __asm__ volatile("" : "+r"(q8));
                __m256i sum[Tokens];
                dot<Format>(block + half * 32, q8, sum);
                auto d = load_halves(block + scales_at + half * 16);
                for (int t = 0; t < Tokens; ++t) {
                    // The offset of q8_0 is off already.
                    if constexpr (Format == weight_format::q4_0)
                        sum[t] = _mm256_add_epi32(sum[t], _mm256_set1_epi32(a.x.bias[at + t]));
                    auto scale = _mm256_mul_ps(d, _mm256_set1_ps(a.x.scales[at + t]));
                    acc[half][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]), scale, acc[half][t]);
                }
                if constexpr (minima) {
                    auto m = load_halves(block + scales_at + 32 + half * 16);
                    for (int t = 0; t < Tokens; ++t)
                        acc[half][t] = _mm256_fmadd_ps(m, _mm256_set1_ps(a.x.sums[at + t]), acc[half][t]);
                }
            }
            block += bytes;
            q8 += Tokens * block_columns;
        }
        for (int half = 0; half < 2; ++half)
            for (int t = 0; t < Tokens; ++t)
                finish(a, t, p * panel_rows + half * lanes, acc[half][t]);
    }
}

template<weight_format Format>
inline __m256 load_column(std::byte const* from) noexcept
{
    if constexpr (Format == weight_format::f32)
        return _mm256_loadu_ps(reinterpret_cast<float const*>(from));
    else if constexpr (Format == weight_format::f16)
        return load_halves(from);
    else
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))), 16));
}

/// `Panels` panels at once: enough sums in flight to hide the latency of an fma.
template<weight_format Format, int Panels, int Tokens>
inline void multiply_columns(tile_args const& a, std::int64_t p) noexcept
{
    constexpr int bytes = Format == weight_format::f32 ? 64 : 32;
    __m256 acc[Panels * 2][Tokens];
    for (auto& row : acc)
        for (auto& sum : row)
            sum = _mm256_setzero_ps();
    auto stride = a.cols * bytes;
    auto column = a.panels + p * stride;
    auto x = a.x.f32;
    for (std::int64_t k = 0; k < a.cols; ++k, column += bytes, x += Tokens) {
        __m256 w[Panels * 2];
        for (int i = 0; i < Panels * 2; ++i)
            w[i] = load_column<Format>(column + i / 2 * stride + i % 2 * (bytes / 2));
        for (int t = 0; t < Tokens; ++t) {
            auto value = _mm256_set1_ps(x[t]);
            for (int i = 0; i < Panels * 2; ++i)
                acc[i][t] = _mm256_fmadd_ps(w[i], value, acc[i][t]);
        }
    }
    for (int i = 0; i < Panels * 2; ++i)
        for (int t = 0; t < Tokens; ++t)
            finish(a, t, (p + i / 2) * panel_rows + i % 2 * lanes, acc[i][t]);
}

template<weight_format Format, int Tokens>
void multiply_floats(tile_args const& a) noexcept
{
    constexpr int panels = Tokens >= 4 ? 1 : Tokens >= 2 ? 2 : 4;
    std::int64_t p = 0;
    for (; p + panels <= a.panel_count; p += panels)
        multiply_columns<Format, panels, Tokens>(a, p);
    for (; p < a.panel_count; ++p)
        multiply_columns<Format, 1, Tokens>(a, p);
}

/// Calls the instance for the tile's number of tokens.
template<weight_format Format, int... I>
inline void dispatch(tile_args const& a, std::integer_sequence<int, I...>) noexcept
{
    if constexpr (takes_q8(Format))
        ((a.x.tokens == I + 1 ? multiply_blocks<Format, I + 1>(a) : void()), ...);
    else
        ((a.x.tokens == I + 1 ? multiply_floats<Format, I + 1>(a) : void()), ...);
}

template<weight_format Format>
void multiply(tile_args const& a) noexcept
{
    dispatch<Format>(a, std::make_integer_sequence<int, takes_q8(Format) ? most_tile : most_tile_f>());
}

/// The sum of the eight 32-bit lanes.
inline std::int32_t add_lanes(__m256i v) noexcept
{
    auto half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
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
            auto q = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x.q8 + from * block_columns));
            if (to.q8) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q8 + at * block_columns), q);
            if (to.scales) to.scales[at] = x.scales[from];
            if (to.sums && x.sums) to.sums[at] = x.sums[from];
            if (to.bias) {
                auto pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
                to.bias[at] = -offset * add_lanes(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            }
        }
}

void quantise_row(float const* x, std::int64_t cols, std::int8_t* q8, float* scales, float* sums) noexcept
{
    auto const magnitude = _mm256_set1_epi32(0x7fffffff);
    for (std::int64_t b = 0; b < cols / block_columns; ++b, x += block_columns, q8 += block_columns) {
        __m256 v[4];
        auto most = _mm256_setzero_si256();
        for (int i = 0; i < 4; ++i) {
            v[i] = _mm256_loadu_ps(x + i * lanes);
            most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
        }
        auto half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
        half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
        auto amax = __builtin_bit_cast(float, _mm_cvtsi128_si32(half));
        auto to = reinterpret_cast<__m256i*>(q8);
        if (!(amax >= quantise_smallest && amax < __builtin_inff())) {
            _mm256_storeu_si256(to, _mm256_setzero_si256());
            scales[b] = sums[b] = amax < quantise_smallest ? 0.0f : __builtin_nanf("");
            continue;
        }
        auto scale = amax / 127.0f;
        auto inverse = _mm256_set1_ps(1.0f / scale);
        __m256i q[4];
        for (int i = 0; i < 4; ++i)
            q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
        auto sum = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
        // Packing works in 128-bit halves: the last step puts the groups of four back in order.
        auto packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        _mm256_storeu_si256(to, _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
        scales[b] = scale;
        sums[b] = scale * static_cast<float>(add_lanes(sum));
    }
}

constexpr product_kernels kernels = {{most_tile_f, most_tile_f, most_tile_f, 3, most_tile, most_tile},
                                     {multiply<weight_format::f32>, multiply<weight_format::f16>,
                                      multiply<weight_format::bf16>, multiply<weight_format::q4_0>,
                                      multiply<weight_format::q4_1>, multiply<weight_format::q8_0>},
                                     arrange,
                                     quantise_row,
                                     avx2::gate,
                                     avx2::activate};

} // namespace

product_kernels const& avx2_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
