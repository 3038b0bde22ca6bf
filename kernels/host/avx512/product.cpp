// The products for AVX-512 with VNNI: a register holds one number of each of a panel's 16 rows.

#include <plait/kernels/host/avx512/intrinsics.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <limits>
#include <utility>

namespace plait::host::detail {

namespace {

constexpr int lanes = 16;
constexpr int most_tile = 8;
constexpr int most_tile_f = 16;

inline __m512i load_bytes(std::byte const* from) noexcept
{
    return _mm512_loadu_si512(from);
}

inline __m512 load_halves(std::byte const* from) noexcept
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from)));
}

/// Four activations, to all lanes.
inline __m512i four(std::int8_t const* from) noexcept
{
    std::int32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return _mm512_set1_epi32(word);
}

inline void prefetch(std::byte const* from) noexcept
{
    _mm_prefetch(reinterpret_cast<char const*>(from), _MM_HINT_T0);
}

/// Makes outputs of the sums of a panel for `Tokens` tokens (product_args), and stores them.
template<int Tokens>
[[gnu::always_inline]] inline void finish(tile_args const& a, std::int64_t panel, __m512 const (&acc)[Tokens]) noexcept
{
    auto rows = a.rows - panel * lanes;
    auto mask = rows >= lanes ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1u << rows) - 1);
    for (int t = 0; t < Tokens; ++t) {
        auto at = t * a.out_stride + panel * lanes;
        auto value = acc[t];
        if (a.bias) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, a.bias + panel * lanes));
        value = _mm512_mul_ps(_mm512_set1_ps(a.scale), value);
        if (a.residual)
            value = _mm512_add_ps(
                _mm512_mul_ps(_mm512_set1_ps(a.residual_scale), _mm512_maskz_loadu_ps(mask, a.residual + at)), value);
        _mm512_mask_storeu_ps(a.out + at, mask, value);
    }
}

/// How far ahead of their use weights are asked for, in bytes: what memory delivers within its latency, and past a
/// page's end, where the processor's own prefetch stops.
constexpr int block_bytes_ahead = 5120;
constexpr int column_bytes_ahead = 1024;

template<weight_format Format, int Tokens>
void multiply_blocks(tile_args const& a) noexcept
{
    constexpr bool bytes8 = Format == weight_format::q8_0;
    constexpr bool minima = Format == weight_format::q4_1;
    constexpr int bytes = bytes8 ? 544 : minima ? 320 : 288;
    constexpr int scales_at = bytes8 ? 512 : 256;
    auto blocks = a.cols / block_columns;
    auto block = a.panels;
    auto const low_halves = _mm512_set1_epi8(15);
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        __m512 acc[Tokens];
        for (auto& sum : acc)
            sum = _mm512_setzero_ps();
        auto q8 = a.x.q8;
        auto scales = a.x.scales;
        auto sums = a.x.sums;
        auto bias = a.x.bias;
        for (std::int64_t b = 0; b < blocks; ++b) {
            for (int at = 0; at < bytes; at += 64)
                prefetch(block + block_bytes_ahead + at);
            __m512i w[8];
            if constexpr (bytes8) {
                for (int j = 0; j < 8; ++j)
                    w[j] = load_bytes(block + j * 64);
            } else {
                for (int j = 0; j < 4; ++j) {
                    auto both = load_bytes(block + j * 64);
                    w[2 * j] = _mm512_and_si512(both, low_halves);
                    w[2 * j + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_halves);
                }
            }
            auto d = load_halves(block + scales_at);
            [[maybe_unused]] __m512 m;
            if constexpr (minima) m = load_halves(block + scales_at + 32);
            for (int t = 0; t < Tokens; ++t) {
                // Two integer sums: half the latency.
                auto sum = minima ? _mm512_setzero_si512() : _mm512_set1_epi32(bias[t]);
                auto odd = _mm512_setzero_si512();
                auto q = q8 + t * block_columns;
                for (int j = 0; j < 8; j += 2) {
                    sum = _mm512_dpbusd_epi32(sum, w[j], four(q + j * 4));
                    odd = _mm512_dpbusd_epi32(odd, w[j + 1], four(q + j * 4 + 4));
                }
                sum = _mm512_add_epi32(sum, odd);
                acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(d, _mm512_set1_ps(scales[t])), acc[t]);
                if constexpr (minima) acc[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(sums[t]), acc[t]);
            }
            block += bytes;
            q8 += Tokens * block_columns;
            scales += Tokens;
            if constexpr (minima)
                sums += Tokens;
            else
                bias += Tokens;
        }
        finish(a, p, acc);
    }
}

template<weight_format Format>
inline __m512 load_column(std::byte const* from) noexcept
{
    if constexpr (Format == weight_format::f32)
        return _mm512_loadu_ps(from);
    else if constexpr (Format == weight_format::f16)
        return load_halves(from);
    else
        return _mm512_castsi512_ps(
            _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from))), 16));
}

/// `Panels` panels at once: enough sums in flight to hide the latency of an fma.
template<weight_format Format, int Panels, int Tokens>
inline void multiply_columns(tile_args const& a, std::int64_t p) noexcept
{
    constexpr int bytes = Format == weight_format::f32 ? 64 : 32;
    __m512 acc[Panels][Tokens];
    for (auto& row : acc)
        for (auto& sum : row)
            sum = _mm512_setzero_ps();
    auto stride = a.cols * bytes;
    auto column = a.panels + p * stride;
    auto x = a.x.f32;
    for (std::int64_t k = 0; k < a.cols; ++k, column += bytes, x += Tokens) {
        __m512 w[Panels];
        for (int i = 0; i < Panels; ++i) {
            w[i] = load_column<Format>(column + i * stride);
            // One stream that arithmetic slows down needs asking; several are best left to the processor's own
            // prefetch.
            if constexpr (Panels == 1) prefetch(column + i * stride + column_bytes_ahead);
        }
        for (int t = 0; t < Tokens; ++t) {
            auto value = _mm512_set1_ps(x[t]);
            for (int i = 0; i < Panels; ++i)
                acc[i][t] = _mm512_fmadd_ps(w[i], value, acc[i][t]);
        }
    }
    for (int i = 0; i < Panels; ++i)
        finish(a, p + i, acc[i]);
}

template<weight_format Format, int Tokens>
void multiply_floats(tile_args const& a) noexcept
{
    constexpr int panels = Tokens >= 5 ? 1 : 4;
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

void arrange(activation_view const& x, std::int64_t const* rows, int tokens, int offset,
             arrange_target const& to) noexcept
{
    auto blocks = x.cols / block_columns;
    auto row_blocks = x.row_features() / block_columns;
    auto const ones = _mm256_set1_epi8(1);
    for (int t = 0; t < tokens; ++t)
        for (std::int64_t b = 0; b < blocks; ++b) {
            auto from = rows[t] * row_blocks + b;
            auto at = b * tokens + t;
            auto q = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x.q8 + from * block_columns));
            if (to.q8) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q8 + at * block_columns), q);
            if (to.scales) to.scales[at] = x.scales[from];
            if (to.sums && x.sums) to.sums[at] = x.sums[from];
            if (to.bias) {
                auto sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, q);
                auto half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
                half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
                half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
                to.bias[at] = -offset * _mm_cvtsi128_si32(half);
            }
        }
}

void quantise_row(float const* x, std::int64_t cols, std::int8_t* q8, float* scales, float* sums) noexcept
{
    auto const magnitude = _mm512_set1_epi32(0x7fffffff);
    for (std::int64_t b = 0; b < cols / block_columns; ++b, x += block_columns, q8 += block_columns) {
        auto low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + lanes);
        auto most = _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(low), magnitude),
                                                             _mm512_and_si512(_mm512_castps_si512(high), magnitude)));
        auto amax = __builtin_bit_cast(float, most);
        auto to = reinterpret_cast<__m128i*>(q8);
        if (!(amax >= quantise_smallest && amax < __builtin_inff())) {
            _mm_storeu_si128(to, _mm_setzero_si128());
            _mm_storeu_si128(to + 1, _mm_setzero_si128());
            scales[b] = sums[b] = amax < quantise_smallest ? 0.0f : __builtin_nanf("");
            continue;
        }
        auto scale = amax / 127.0f;
        auto inverse = _mm512_set1_ps(1.0f / scale);
        auto first = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
        auto second = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
        _mm_storeu_si128(to, _mm512_cvtepi32_epi8(first));
        _mm_storeu_si128(to + 1, _mm512_cvtepi32_epi8(second));
        scales[b] = scale;
        sums[b] = scale * static_cast<float>(_mm512_reduce_add_epi32(_mm512_add_epi32(first, second)));
    }
}

constexpr product_kernels kernels = {{most_tile_f, most_tile_f, most_tile_f, most_tile, most_tile, most_tile},
                                     {multiply<weight_format::f32>, multiply<weight_format::f16>,
                                      multiply<weight_format::bf16>, multiply<weight_format::q4_0>,
                                      multiply<weight_format::q4_1>, multiply<weight_format::q8_0>},
                                     arrange,
                                     quantise_row,
                                     avx512::gate,
                                     avx512::activate};

} // namespace

product_kernels const& avx512_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
