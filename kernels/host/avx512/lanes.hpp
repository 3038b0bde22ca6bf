#pragma once

#include <plait/kernels/host/avx512/math.hpp>

#include <cstdint>
#include <cstring>

namespace plait::host::avx512 {

/// Sixteen F32 (`vector`) or 32-bit integer (`words`) lanes, as the kernels in wide/ see them.
struct lanes {
    using vector = __m512;
    using words = __m512i;

    /// The block of a product of queries and keys, or of weights and values, that fits the registers: queries by
    /// vectors.
    static constexpr int block_queries = 12;
    static constexpr int block_vectors = 2;

    static vector set(float x) noexcept { return _mm512_set1_ps(x); }
    static vector load(float const* p) noexcept { return _mm512_loadu_ps(p); }
    static void store(float* p, vector v) noexcept { _mm512_storeu_ps(p, v); }
    static vector load_f16(std::uint16_t const* p) noexcept
    {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)));
    }
    static void store_f16(std::uint16_t* p, vector v) noexcept
    {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    static vector load_i8(std::int8_t const* p) noexcept
    {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))));
    }
    /// Stores whole numbers from -128 to 127.
    static void store_i8(std::int8_t* p, vector v) noexcept
    {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
    }

    static vector add(vector a, vector b) noexcept { return _mm512_add_ps(a, b); }
    static vector sub(vector a, vector b) noexcept { return _mm512_sub_ps(a, b); }
    static vector mul(vector a, vector b) noexcept { return _mm512_mul_ps(a, b); }
    static vector fma(vector a, vector b, vector c) noexcept { return _mm512_fmadd_ps(a, b, c); }
    /// a > b ? a : b in each lane.
    static vector max(vector a, vector b) noexcept { return _mm512_max_ps(a, b); }
    /// a < b ? a : b in each lane.
    static vector min(vector a, vector b) noexcept { return _mm512_min_ps(a, b); }
    static vector div(vector a, vector b) noexcept { return _mm512_div_ps(a, b); }
    static vector negate(vector a) noexcept { return _mm512_xor_ps(a, set(-0.0f)); }
    static vector magnitude(vector a) noexcept { return _mm512_abs_ps(a); }
    static vector exp(vector a) noexcept { return host::exp(a); }
    static vector log(vector a) noexcept { return host::log(a); }
    static vector tanh(vector a) noexcept { return host::tanh(a); }
    static vector silu(vector a) noexcept { return host::silu(a); }
    static vector gelu_tanh(vector a) noexcept { return host::gelu_tanh(a); }
    static vector gelu_erf(vector a) noexcept { return host::gelu_erf(a); }

    /// Swaps lanes 2i and 2i + 1.
    static vector swap_pairs(vector v) noexcept { return _mm512_permute_ps(v, 0b10110001); }
    /// Eight numbers, each twice.
    static vector load_twice(float const* p) noexcept
    {
        auto const index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
    }
    /// Negates the even lanes.
    static vector negate_even(vector v) noexcept
    {
        return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(v), _mm512_set1_epi64(0x80000000)));
    }

    /// The lanes from `first` up to `last` of `v`, and `fill` in the others.
    static vector keep(vector v, int first, int last, vector fill) noexcept
    {
        return _mm512_mask_mov_ps(fill, static_cast<__mmask16>(((1u << last) - 1) & ~((1u << first) - 1)), v);
    }

    static float sum(vector v) noexcept
    {
        auto eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        auto four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        auto two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    static float largest(vector v) noexcept
    {
        auto eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        auto four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        auto two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
    }

    /// A bit for each lane.
    static std::uint32_t greater(vector a, vector b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
    static std::uint32_t equal(vector a, vector b) noexcept { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
    static std::uint32_t unordered(vector a) noexcept { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
    static std::uint32_t greater(words a, words b) noexcept { return _mm512_cmpgt_epi32_mask(a, b); }
    static vector select(std::uint32_t bits, vector yes, vector no) noexcept
    {
        return _mm512_mask_mov_ps(no, static_cast<__mmask16>(bits), yes);
    }
    static words select(std::uint32_t bits, words yes, words no) noexcept
    {
        return _mm512_mask_mov_epi32(no, static_cast<__mmask16>(bits), yes);
    }

    static words set_words(std::uint32_t x) noexcept { return _mm512_set1_epi32(static_cast<int>(x)); }
    static words count_up() noexcept { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
    static void store_words(std::int32_t* p, words w) noexcept { _mm512_storeu_si512(p, w); }
    static words add(words a, words b) noexcept { return _mm512_add_epi32(a, b); }
    static words exclusive_or(words a, words b) noexcept { return _mm512_xor_si512(a, b); }
    template<int Bits>
    static words shift_right(words a) noexcept
    {
        return _mm512_srli_epi32(a, Bits);
    }
    static vector to_float(words a) noexcept { return _mm512_cvtepi32_ps(a); }
    /// The two halves of the 64-bit products.
    static void multiply(words a, words b, words& high, words& low) noexcept
    {
        auto even = _mm512_mul_epu32(a, b);
        auto odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
        low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
        high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
    }
    /// Each lane as a whole number of units of 2^-40 (gumbel.hpp).
    static void store_units(std::int64_t* p, vector v) noexcept
    {
        auto const rounder = _mm512_set1_pd(0x1.8p12);
        for (int half = 0; half < 2; ++half) {
            auto part = half == 0 ? _mm512_castps512_ps256(v) : _mm512_extractf32x8_ps(v, 1);
            auto sum = _mm512_castpd_si512(_mm512_add_pd(_mm512_cvtps_pd(part), rounder));
            _mm512_storeu_si512(p + 8 * half, _mm512_sub_epi64(sum, _mm512_castpd_si512(rounder)));
        }
    }
};

} // namespace plait::host::avx512
