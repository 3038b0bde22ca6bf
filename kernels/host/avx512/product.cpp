// The products for AVX-512 with VNNI: a register holds one number of each of a panel's 16 rows.

#include <plait/kernels/host/avx512/intrinsics.hpp>
#include <plait/kernels/host/avx512/unpack.hpp>
#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <limits>
#include <utility>

namespace plait::host::detail {

namespace {

constexpr int lanes = 16;
constexpr int most_tile = 8;
constexpr int most_tile_f = 16;

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

/// Adds to each token's sums the products with 32 columns of weights that have one scale.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void add_whole(__m512i const (&w)[8], avx512::scales const& s, activation_tile const& x,
                                             std::int64_t at, std::int8_t const* q8, __m512 (&acc)[Tokens]) noexcept
{
    constexpr auto form = layout_of(Format);
    for (int t = 0; t < Tokens; ++t) {
        // Two integer sums: half the latency.
        auto sum = form.offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(x.bias[at + t]);
        auto odd = _mm512_setzero_si512();
        auto q = q8 + t * block_columns;
        for (int j = 0; j < 8; j += 2) {
            sum = _mm512_dpbusd_epi32(sum, w[j], four(q + j * 4));
            odd = _mm512_dpbusd_epi32(odd, w[j + 1], four(q + j * 4 + 4));
        }
        sum = _mm512_add_epi32(sum, odd);
        auto scale = _mm512_mul_ps(s.d[0], _mm512_set1_ps(x.scales[at + t]));
        acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, acc[t]);
        if constexpr (form.minima) acc[t] = _mm512_fmadd_ps(s.m[0], _mm512_set1_ps(x.sums[at + t]), acc[t]);
    }
}

/// The same where each half of the columns has its own scale.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void add_halves(__m512i const (&w)[8], avx512::scales const& s, activation_tile const& x,
                                              std::int64_t at, std::int8_t const* q8, __m512 (&acc)[Tokens]) noexcept
{
    constexpr auto form = layout_of(Format);
    for (int t = 0; t < Tokens; ++t) {
        auto bias = x.bias + 2 * (at + t);
        auto first = form.offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(bias[0]);
        auto second = form.offset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(bias[1]);
        auto q = q8 + t * block_columns;
        for (int j = 0; j < 4; ++j) {
            first = _mm512_dpbusd_epi32(first, w[j], four(q + j * 4));
            second = _mm512_dpbusd_epi32(second, w[j + 4], four(q + j * 4 + 16));
        }
        auto u = _mm512_mul_ps(_mm512_cvtepi32_ps(first), s.d[0]);
        u = _mm512_fmadd_ps(_mm512_cvtepi32_ps(second), s.d[1], u);
        if constexpr (form.minima) {
            u = _mm512_fmadd_ps(s.m[0], _mm512_cvtepi32_ps(_mm512_set1_epi32(bias[0])), u);
            u = _mm512_fmadd_ps(s.m[1], _mm512_cvtepi32_ps(_mm512_set1_epi32(bias[1])), u);
        }
        acc[t] = _mm512_fmadd_ps(u, _mm512_set1_ps(x.scales[at + t]), acc[t]);
    }
}

template<weight_format Format, int Tokens>
void multiply_blocks(tile_args const& a) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr int parts = form.columns / 32, bytes = form.panel_bytes(), value_bytes = form.value_bytes();
    auto blocks = a.cols / form.columns;
    auto block = a.panels;
    for (std::int64_t p = 0; p < a.panel_count; ++p) {
        __m512 acc[Tokens];
        for (auto& sum : acc)
            sum = _mm512_setzero_ps();
        auto q8 = a.x.q8;
        std::int64_t at = 0;
        for (std::int64_t b = 0; b < blocks; ++b, block += bytes) {
            avx512::block_scales_reader<Format> const scales(block);
            for (int part = 0; part < parts; ++part) {
                auto values = block + part * value_bytes;
                // What follows the values of a block of several parts is asked for with the last.
                for (int line = 0; line < bytes / parts; line += 64)
                    prefetch(block + bytes / parts * part + block_bytes_ahead + line);
                __m512i w[8];
                avx512::unpack<Format>(values, w);
                if constexpr (form.run_columns == 32)
                    add_whole<Format>(w, scales.part(part), a.x, at, q8, acc);
                else
                    add_halves<Format>(w, scales.part(part), a.x, at, q8, acc);
                at += Tokens;
                q8 += Tokens * block_columns;
            }
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
        return avx512::load_halves(from);
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

inline std::int32_t add_lanes(__m128i v) noexcept
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}

void arrange(activation_view const& x, std::int64_t const* rows, int tokens, int factor, int runs,
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
            if (to.bias == nullptr) continue;
            auto sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, q);
            auto low = add_lanes(_mm256_castsi256_si128(sums)), high = add_lanes(_mm256_extracti128_si256(sums, 1));
            if (runs == 1) {
                to.bias[at] = factor * (low + high);
            } else {
                to.bias[at * 2] = factor * low;
                to.bias[at * 2 + 1] = factor * high;
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

constexpr int tile_of(weight_format format) noexcept
{
    return takes_q8(format) ? most_tile : most_tile_f;
}

template<int... F>
constexpr product_kernels make_kernels(std::integer_sequence<int, F...>) noexcept
{
    return {{tile_of(static_cast<weight_format>(F))...},
            {multiply<static_cast<weight_format>(F)>...},
            arrange,
            quantise_row,
            avx512::gate,
            avx512::activate};
}

constexpr auto kernels = make_kernels(std::make_integer_sequence<int, weight_format_count>());

} // namespace

product_kernels const& avx512_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
