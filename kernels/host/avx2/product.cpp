// The products for AVX2: a panel's 16 rows are two registers of eight.

#include <plait/kernels/host/avx2/unpack.hpp>
#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <immintrin.h>
#include <utility>

namespace plait::host::detail {

namespace {

constexpr int lanes = 8;
constexpr int most_tile = 4;
constexpr int most_tile_f = 6;

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

/// The sums of group J onwards: as many groups as fit 16 bits, widened when they are full.
template<weight_format Format, int First, int J, int Last, int Tokens>
[[gnu::always_inline]] inline void add_groups(std::byte const* half, std::int8_t const* q8, __m256i (&pairs)[Tokens],
                                              __m256i (&sum)[Tokens]) noexcept
{
    constexpr int fit = avx2::pairs_that_fit(Format);
    auto w = avx2::unpack_group<Format, J>(half);
    if constexpr (avx2::is_signed(Format)) {
        auto magnitude = _mm256_abs_epi8(w);
        for (int t = 0; t < Tokens; ++t)
            sum[t] = add_products(sum[t], w, magnitude, q8 + t * block_columns + J * 4);
    } else {
        constexpr bool starts = (J - First) % fit == 0;
        for (int t = 0; t < Tokens; ++t) {
            auto product = _mm256_maddubs_epi16(w, four(q8 + t * block_columns + J * 4));
            pairs[t] = starts ? product : _mm256_add_epi16(pairs[t], product);
        }
        if constexpr (J + 1 == Last || (J + 1 - First) % fit == 0)
            for (int t = 0; t < Tokens; ++t) {
                auto wide = _mm256_madd_epi16(pairs[t], _mm256_set1_epi16(1));
                sum[t] = J - First < fit ? wide : _mm256_add_epi32(sum[t], wide);
            }
    }
    if constexpr (J + 1 < Last) add_groups<Format, First, J + 1, Last>(half, q8, pairs, sum);
}

/// The exact sums of eight rows (`half` 0 or 1 of the panel) with the activations of each token, of groups First up to
/// Last of four columns. Weights are taken a register at a time and used for all tokens: sixteen registers hold no
/// block.
template<weight_format Format, int First, int Last, int Tokens>
[[gnu::always_inline]] inline void dot(std::byte const* half, std::int8_t const* q8, __m256i (&sum)[Tokens]) noexcept
{
    __m256i pairs[Tokens];
    for (int t = 0; t < Tokens; ++t)
        sum[t] = pairs[t] = _mm256_setzero_si256();
    add_groups<Format, First, First, Last>(half, q8, pairs, sum);
}

/// Adds the products of eight rows with 32 columns that have one scale, run `run` of the block.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void add_whole(std::byte const* half, avx2::half_scales<Format> scales, int run,
                                             activation_tile const& x, std::int64_t at, std::int8_t const* q8,
                                             __m256 (&acc)[Tokens]) noexcept
{
    constexpr auto form = layout_of(Format);
    __m256i sum[Tokens];
    dot<Format, 0, 8>(half, q8, sum);
    auto d = scales.d(run);
    for (int t = 0; t < Tokens; ++t) {
        // Of signed weights the offset is off already.
        if constexpr (form.offset != 0 && !avx2::is_signed(Format))
            sum[t] = _mm256_add_epi32(sum[t], _mm256_set1_epi32(x.bias[at + t]));
        auto scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scales[at + t]));
        acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]), scale, acc[t]);
    }
    if constexpr (form.minima) {
        auto m = scales.m(run);
        for (int t = 0; t < Tokens; ++t)
            acc[t] = _mm256_fmadd_ps(m, _mm256_set1_ps(x.sums[at + t]), acc[t]);
    }
}

/// Of one half of the columns, run `run` of the block: the exact sums, with the offset off.
template<weight_format Format, int Half, int Tokens>
[[gnu::always_inline]] inline void dot_run(std::byte const* half, activation_tile const& x, std::int64_t at,
                                           std::int8_t const* q8, __m256i (&sum)[Tokens]) noexcept
{
    dot<Format, Half * 4, Half * 4 + 4>(half, q8, sum);
    if constexpr (layout_of(Format).offset != 0)
        for (int t = 0; t < Tokens; ++t)
            sum[t] = _mm256_add_epi32(sum[t], _mm256_set1_epi32(x.bias[2 * (at + t) + Half]));
}

/// As add_whole where each half of the columns has its own scale, runs `run` and `run` + 1 of the block.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void add_halves(std::byte const* half, avx2::half_scales<Format> scales, int run,
                                              activation_tile const& x, std::int64_t at, std::int8_t const* q8,
                                              __m256 (&acc)[Tokens]) noexcept
{
    constexpr auto form = layout_of(Format);
    __m256 u[Tokens];
    __m256i sum[Tokens];
    dot_run<Format, 0>(half, x, at, q8, sum);
    auto d = scales.d(run);
    for (int t = 0; t < Tokens; ++t)
        u[t] = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[t]), d);
    dot_run<Format, 1>(half, x, at, q8, sum);
    d = scales.d(run + 1);
    for (int t = 0; t < Tokens; ++t)
        u[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[t]), d, u[t]);
    if constexpr (form.minima)
        for (int i = 0; i < 2; ++i) {
            auto m = scales.m(run + i);
            for (int t = 0; t < Tokens; ++t)
                u[t] = _mm256_fmadd_ps(m, _mm256_cvtepi32_ps(_mm256_set1_epi32(x.bias[2 * (at + t) + i])), u[t]);
        }
    for (int t = 0; t < Tokens; ++t)
        acc[t] = _mm256_fmadd_ps(u[t], _mm256_set1_ps(x.scales[at + t]), acc[t]);
}

/// One panel. One token goes through both halves of a block together, as they come from memory; several take one half
/// after the other, for whose sums there are registers: the panel is in the cache then.
template<weight_format Format, int Tokens>
[[gnu::always_inline]] inline void multiply_panel(tile_args const& a, std::int64_t p, std::byte const* panel) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr int parts = form.columns / 32, bytes = form.panel_bytes(), value_bytes = form.value_bytes();
    constexpr int runs = form.runs_of_32();
    constexpr int together = Tokens >= 3 ? 1 : 2;
    auto blocks = a.cols / form.columns;
    for (int first = 0; first < 2; first += together) {
        __m256 acc[together][Tokens];
        for (auto& row : acc)
            for (auto& sum : row)
                sum = _mm256_setzero_ps();
        auto q8 = a.x.q8;
        std::int64_t at = 0;
        auto block = panel;
        for (std::int64_t b = 0; b < blocks; ++b, block += bytes)
            for (int part = 0; part < parts; ++part) {
                // What follows the values of a block of several parts is asked for with the last.
                if (first == 0)
                    for (int line = 0; line < bytes / parts; line += 64)
                        prefetch(block + bytes / parts * part + bytes_ahead + line);
                for (int i = 0; i < together; ++i) {
                    // Makes the second half load its activations again: kept for it, they would be spilled to the
                    // stack.
                    __asm__ volatile("" : "+r"(q8));
                    auto values = block + part * value_bytes + (first + i) * 32;
                    avx2::half_scales<Format> scales(block, first + i);
                    if constexpr (runs == 1)
                        add_whole(values, scales, part, a.x, at, q8, acc[i]);
                    else
                        add_halves(values, scales, part * 2, a.x, at, q8, acc[i]);
                }
                at += Tokens;
                q8 += Tokens * block_columns;
            }
        for (int i = 0; i < together; ++i)
            for (int t = 0; t < Tokens; ++t)
                finish(a, t, p * panel_rows + (first + i) * lanes, acc[i][t]);
    }
}

template<weight_format Format, int Tokens>
void multiply_blocks(tile_args const& a) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr int bytes = form.panel_bytes();
    auto panel_bytes = a.cols / form.columns * bytes;
    for (std::int64_t p = 0; p < a.panel_count; ++p)
        multiply_panel<Format, Tokens>(a, p, a.panels + p * panel_bytes);
}

template<weight_format Format>
inline __m256 load_column(std::byte const* from) noexcept
{
    if constexpr (Format == weight_format::f32)
        return _mm256_loadu_ps(reinterpret_cast<float const*>(from));
    else if constexpr (Format == weight_format::f16)
        return avx2::load_halves(from);
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

/// The sum of the 32-bit lanes.
inline std::int32_t add_lanes(__m128i v) noexcept
{
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}

inline std::int32_t add_lanes(__m256i v) noexcept
{
    return add_lanes(_mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
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
            auto q = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x.q8 + from * block_columns));
            if (to.q8) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q8 + at * block_columns), q);
            if (to.scales) to.scales[at] = x.scales[from];
            if (to.sums && x.sums) to.sums[at] = x.sums[from];
            if (to.bias == nullptr) continue;
            auto pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
            auto sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
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
            avx2::gate,
            avx2::activate};
}

constexpr auto kernels = make_kernels(std::make_integer_sequence<int, weight_format_count>());

} // namespace

product_kernels const& avx2_product_kernels() noexcept
{
    return kernels;
}

} // namespace plait::host::detail
