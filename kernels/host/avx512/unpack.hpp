#pragma once

#include <plait/kernels/host/avx512/intrinsics.hpp>
#include <plait/kernels/host/block_layout.hpp>

#include <cstddef>
#include <utility>

/// What a panel's block holds, in registers of 16 rows.
namespace plait::host::avx512 {

static inline __m512i load_line(std::byte const* from) noexcept
{
    return _mm512_loadu_si512(from);
}

static inline __m512 load_halves(std::byte const* from) noexcept
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from)));
}

/// Each byte's bits, moved right by `Count` (left where it is negative); whoever uses them masks the neighbour's off.
template<int Count>
static inline __m512i move_right(__m512i v) noexcept
{
    if constexpr (Count > 0)
        return _mm512_srli_epi16(v, Count);
    else if constexpr (Count < 0)
        return _mm512_slli_epi16(v, -Count);
    else
        return v;
}

/// a | (b & mask)
static inline __m512i join(__m512i a, __m512i b, __m512i mask) noexcept
{
    return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

/// A codebook's values plus `offset`, in each quarter of the register.
static inline __m512i load_codebook(std::int8_t const* values, int offset) noexcept
{
    auto table = _mm_loadu_si128(reinterpret_cast<__m128i const*>(values));
    return _mm512_broadcast_i32x4(_mm_add_epi8(table, _mm_set1_epi8(static_cast<char>(offset))));
}

/// The unsigned values of group J of four columns, of the 32 whose lines start at `from`.
template<weight_format Format, int J>
static inline __m512i unpack_group(std::byte const* from) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr int low = form.low_bits, high = form.high_bits;
    auto w = move_right<J * low % 8>(load_line(from + J * low / 8 * 64));
    if constexpr (low != 8) w = _mm512_and_si512(w, _mm512_set1_epi8((1 << low) - 1));
    if constexpr (high != 0) {
        constexpr int at = J * high % 8;
        auto line = load_line(from + (low + J * high / 8) * 64);
        w = join(w, move_right<at - low>(line), _mm512_set1_epi8(((1 << high) - 1) << low));
    }
    if constexpr (form.codebook != nullptr) w = _mm512_shuffle_epi8(load_codebook(form.codebook, form.offset), w);
    return w;
}

template<weight_format Format, int... J>
static inline void unpack_groups(std::byte const* from, __m512i (&w)[8], std::integer_sequence<int, J...>) noexcept
{
    ((w[J] = unpack_group<Format, J>(from)), ...);
}

/// The unsigned values of 32 columns, four columns a register.
template<weight_format Format>
static inline void unpack(std::byte const* from, __m512i (&w)[8]) noexcept
{
    unpack_groups<Format>(from, w, std::make_integer_sequence<int, 8>());
}

/// Scales and minima of the runs in 32 columns, the minima as they are added.
struct scales {
    __m512 d[2];
    __m512 m[2];
};

/// The scales of a panel's block: what its parts of 32 columns share is read once.
template<weight_format Format>
class block_scales_reader {
public:
    explicit block_scales_reader(std::byte const* block) noexcept
    {
        constexpr int d_at = form.d_at(), m_at = form.m_at(), scales_at = form.scales_at();
        scales_ = block + scales_at;
        if constexpr (form.scales == block_scales::power)
            d_ = powers(block + d_at);
        else
            d_ = load_halves(block + d_at);
        if constexpr (form.minima) m_ = load_halves(block + m_at);
        // Their products are exact, so the sign may go to either factor.
        if constexpr (form.minima && form.scales != block_scales::one) m_ = _mm512_xor_ps(m_, _mm512_set1_ps(-0.0f));
    }

    /// Of columns 32 i and up.
    scales part(int i) const noexcept
    {
        constexpr int runs = form.runs_of_32(), minima_from = form.minima_at() - form.scales_at();
        scales out;
        if constexpr (form.scales == block_scales::one || form.scales == block_scales::power) {
            out.d[0] = d_;
            if constexpr (form.minima) out.m[0] = m_;
            return out;
        }
        for (int run = 0; run < runs; ++run) {
            auto from = scales_ + (i * runs + run) * 16;
            if constexpr (form.scales == block_scales::nibbles) {
                auto both = words(from);
                auto low = _mm512_and_si512(both, _mm512_set1_epi32(15));
                out.d[run] = _mm512_mul_ps(d_, _mm512_cvtepi32_ps(low));
                // Of a negative byte the sign bits are shifted in as well.
                auto high = _mm512_and_si512(_mm512_srli_epi32(both, 4), _mm512_set1_epi32(15));
                out.m[run] = _mm512_mul_ps(m_, _mm512_cvtepi32_ps(high));
            } else {
                out.d[run] = _mm512_mul_ps(d_, _mm512_cvtepi32_ps(words(from)));
                if constexpr (form.minima)
                    out.m[run] = _mm512_mul_ps(m_, _mm512_cvtepi32_ps(words(from + minima_from)));
            }
        }
        return out;
    }

private:
    static constexpr auto form = layout_of(Format);

    /// Sixteen signed bytes; no minimum is above 63.
    static __m512i words(std::byte const* from) noexcept
    {
        return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
    }

    /// e8m0_half_to_f32 of sixteen exponents.
    static __m512 powers(std::byte const* from) noexcept
    {
        auto e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
        auto normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
        auto small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
        return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(normal, small, _mm512_set1_epi32(0x00200000), e));
    }

    __m512 d_, m_;
    std::byte const* scales_;
};

} // namespace plait::host::avx512
