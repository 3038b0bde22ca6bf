#pragma once

#include <plait/kernels/host/block_layout.hpp>

#include <cstddef>
#include <immintrin.h>

/// What a panel's block holds, in registers of eight rows. `half` points to the first or the second 32 bytes of a line.
namespace plait::host::avx2 {

static inline __m256i load_line(std::byte const* from) noexcept
{
    return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from));
}

static inline __m256 load_halves(std::byte const* from) noexcept
{
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)));
}

/// Each byte's bits, moved right by `Count` (left where it is negative); whoever uses them masks the neighbour's off.
template<int Count>
static inline __m256i move_right(__m256i v) noexcept
{
    if constexpr (Count > 0)
        return _mm256_srli_epi16(v, Count);
    else if constexpr (Count < 0)
        return _mm256_slli_epi16(v, -Count);
    else
        return v;
}

/// Weights that don't fit the unsigned operand of vpmaddubsw, which saturates at 32767, are taken with their sign.
static constexpr bool is_signed(weight_format format) noexcept
{
    return layout_of(format).offset == 128;
}

/// How many pairs of products with activations of at most 127 fit a signed 16-bit sum.
static constexpr int pairs_that_fit(weight_format format) noexcept
{
    auto form = layout_of(format);
    auto largest = form.codebook != nullptr ? 2 * form.offset : (1 << (form.low_bits + form.high_bits)) - 1;
    return 32767 / (largest * 127 * 2);
}

/// The values of group J of four columns, of the 32 whose lines start at `half`: signed, or unsigned with their offset.
template<weight_format Format, int J>
static inline __m256i unpack_group(std::byte const* half) noexcept
{
    constexpr auto form = layout_of(Format);
    constexpr int low = form.low_bits, high = form.high_bits;
    auto w = move_right<J * low % 8>(load_line(half + J * low / 8 * 64));
    if constexpr (low != 8) w = _mm256_and_si256(w, _mm256_set1_epi8((1 << low) - 1));
    if constexpr (high != 0) {
        constexpr int at = J * high % 8;
        auto line = move_right<at - low>(load_line(half + (low + J * high / 8) * 64));
        w = _mm256_or_si256(w, _mm256_and_si256(line, _mm256_set1_epi8(((1 << high) - 1) << low)));
    }
    if constexpr (form.codebook != nullptr) {
        auto table = _mm_loadu_si128(reinterpret_cast<__m128i const*>(form.codebook));
        if constexpr (!is_signed(Format)) table = _mm_add_epi8(table, _mm_set1_epi8(form.offset));
        w = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), w);
    } else if constexpr (is_signed(Format)) {
        w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    }
    return w;
}

/// The scales of half a panel's block.
template<weight_format Format>
class half_scales {
public:
    half_scales(std::byte const* block, int half) noexcept
        : block_(block)
        , half_(half)
    {
    }

    /// Of run `run` of the block's columns.
    __m256 d(int run) const noexcept
    {
        constexpr int d_at = form.d_at(), scales_at = form.scales_at();
        if constexpr (form.scales == block_scales::power) return powers(block_ + d_at + half_ * 8);
        auto d = load_halves(block_ + d_at + half_ * 16);
        if constexpr (form.scales == block_scales::bytes)
            d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(words(block_ + scales_at, run)));
        if constexpr (form.scales == block_scales::nibbles) {
            auto low = _mm256_and_si256(words(block_ + scales_at, run), _mm256_set1_epi32(15));
            d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(low));
        }
        return d;
    }

    /// The minimum as it is added.
    __m256 m(int run) const noexcept
    {
        constexpr int m_at = form.m_at(), minima_at = form.minima_at(), scales_at = form.scales_at();
        auto m = load_halves(block_ + m_at + half_ * 16);
        if constexpr (form.scales == block_scales::one) return m;
        __m256i of_run;
        if constexpr (form.scales == block_scales::bytes) {
            of_run = words(block_ + minima_at, run);
        } else {
            // Of a negative byte the sign bits are shifted in as well.
            of_run = _mm256_and_si256(_mm256_srli_epi32(words(block_ + scales_at, run), 4), _mm256_set1_epi32(15));
        }
        return _mm256_mul_ps(_mm256_xor_ps(m, _mm256_set1_ps(-0.0f)), _mm256_cvtepi32_ps(of_run));
    }

private:
    static constexpr auto form = layout_of(Format);

    /// Eight signed bytes; no minimum is above 63.
    __m256i words(std::byte const* from, int run) const noexcept
    {
        return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from + run * 16 + half_ * 8)));
    }

    /// e8m0_half_to_f32 of eight exponents.
    static __m256 powers(std::byte const* from) noexcept
    {
        auto e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from)));
        auto normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
        auto subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
        return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
    }

    std::byte const* block_;
    int half_;
};

} // namespace plait::host::avx2
