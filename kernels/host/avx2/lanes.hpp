#pragma once

#include <plait/kernels/host/avx2/math.hpp>

#include <cstdint>
#include <cstring>

namespace plait::host::avx2 {

/// Sixteen F32 (`vector`) or 32-bit integer (`words`) lanes in two registers, as the kernels in wide/ see them.
struct lanes {
    struct vector {
        __m256 low;
        __m256 high;
    };
    struct words {
        __m256i low;
        __m256i high;
    };

    /// The block of a product of queries and keys, or of weights and values, that fits the registers: queries by
    /// vectors.
    static constexpr int block_queries = 6;
    static constexpr int block_vectors = 1;

    static vector set(float x) noexcept { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
    static vector load(float const* p) noexcept { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static void store(float* p, vector v) noexcept
    {
        _mm256_storeu_ps(p, v.low);
        _mm256_storeu_ps(p + 8, v.high);
    }
    static vector load_f16(std::uint16_t const* p) noexcept
    {
        return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))),
                _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p + 8)))};
    }
    static void store_f16(std::uint16_t* p, vector v) noexcept
    {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v.low, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(v.high, _MM_FROUND_TO_NEAREST_INT));
    }
    static vector load_i8(std::int8_t const* p) noexcept
    {
        auto bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
        return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
    }
    /// Stores whole numbers from -128 to 127.
    static void store_i8(std::int8_t* p, vector v) noexcept
    {
        auto pack = [](__m256i w) {
            return _mm_packs_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
        };
        auto low = pack(_mm256_cvtps_epi32(v.low));
        auto high = pack(_mm256_cvtps_epi32(v.high));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(low, high));
    }

    static vector add(vector a, vector b) noexcept
    {
        return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
    }
    static vector sub(vector a, vector b) noexcept
    {
        return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
    }
    static vector mul(vector a, vector b) noexcept
    {
        return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
    }
    static vector fma(vector a, vector b, vector c) noexcept
    {
        return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
    }
    /// a > b ? a : b in each lane.
    static vector max(vector a, vector b) noexcept
    {
        return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
    }
    /// a < b ? a : b in each lane.
    static vector min(vector a, vector b) noexcept
    {
        return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
    }
    static vector div(vector a, vector b) noexcept
    {
        return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
    }
    static vector negate(vector a) noexcept
    {
        auto const sign = _mm256_set1_ps(-0.0f);
        return {_mm256_xor_ps(a.low, sign), _mm256_xor_ps(a.high, sign)};
    }
    static vector magnitude(vector a) noexcept
    {
        auto const sign = _mm256_set1_ps(-0.0f);
        return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
    }
    static vector exp(vector a) noexcept { return {host::exp(a.low), host::exp(a.high)}; }
    static vector log(vector a) noexcept { return {host::log(a.low), host::log(a.high)}; }
    static vector tanh(vector a) noexcept { return {host::tanh(a.low), host::tanh(a.high)}; }
    static vector silu(vector a) noexcept { return {host::silu(a.low), host::silu(a.high)}; }
    static vector gelu_tanh(vector a) noexcept { return {host::gelu_tanh(a.low), host::gelu_tanh(a.high)}; }
    static vector gelu_erf(vector a) noexcept { return {host::gelu_erf(a.low), host::gelu_erf(a.high)}; }

    /// Swaps lanes 2i and 2i + 1.
    static vector swap_pairs(vector v) noexcept
    {
        return {_mm256_permute_ps(v.low, 0b10110001), _mm256_permute_ps(v.high, 0b10110001)};
    }
    /// Eight numbers, each twice.
    static vector load_twice(float const* p) noexcept
    {
        auto v = _mm256_loadu_ps(p);
        return {_mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
                _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
    }
    /// Negates the even lanes.
    static vector negate_even(vector v) noexcept
    {
        auto const sign = _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000));
        return {_mm256_xor_ps(v.low, sign), _mm256_xor_ps(v.high, sign)};
    }

    /// The lanes from `first` up to `last` of `v`, and `fill` in the others.
    static vector keep(vector v, int first, int last, vector fill) noexcept
    {
        return select(((1u << last) - 1) & ~((1u << first) - 1), v, fill);
    }

    static float sum(vector v) noexcept
    {
        auto eight = _mm256_add_ps(v.low, v.high);
        auto four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        auto two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    static float largest(vector v) noexcept
    {
        auto eight = _mm256_max_ps(v.low, v.high);
        auto four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        auto two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
    }

    /// A bit for each lane.
    static std::uint32_t greater(vector a, vector b) noexcept
    {
        return bits(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ));
    }
    static std::uint32_t equal(vector a, vector b) noexcept
    {
        return bits(_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ));
    }
    static std::uint32_t unordered(vector a) noexcept
    {
        return bits(_mm256_cmp_ps(a.low, a.low, _CMP_UNORD_Q), _mm256_cmp_ps(a.high, a.high, _CMP_UNORD_Q));
    }
    static std::uint32_t greater(words a, words b) noexcept
    {
        return bits(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.low, b.low)),
                    _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.high, b.high)));
    }
    static vector select(std::uint32_t bits, vector yes, vector no) noexcept
    {
        return {_mm256_blendv_ps(no.low, yes.low, _mm256_castsi256_ps(spread(bits))),
                _mm256_blendv_ps(no.high, yes.high, _mm256_castsi256_ps(spread(bits >> 8)))};
    }
    static words select(std::uint32_t bits, words yes, words no) noexcept
    {
        return {_mm256_blendv_epi8(no.low, yes.low, spread(bits)),
                _mm256_blendv_epi8(no.high, yes.high, spread(bits >> 8))};
    }

    static words set_words(std::uint32_t x) noexcept
    {
        return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
    }
    static words count_up() noexcept
    {
        return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
    }
    static void store_words(std::int32_t* p, words w) noexcept
    {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), w.low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), w.high);
    }
    static words add(words a, words b) noexcept
    {
        return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
    }
    static words exclusive_or(words a, words b) noexcept
    {
        return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
    }
    template<int Bits>
    static words shift_right(words a) noexcept
    {
        return {_mm256_srli_epi32(a.low, Bits), _mm256_srli_epi32(a.high, Bits)};
    }
    static vector to_float(words a) noexcept { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
    /// The two halves of the 64-bit products.
    static void multiply(words a, words b, words& high, words& low) noexcept
    {
        multiply(a.low, b.low, high.low, low.low);
        multiply(a.high, b.high, high.high, low.high);
    }
    /// Each lane as a whole number of units of 2^-40 (gumbel.hpp).
    static void store_units(std::int64_t* p, vector v) noexcept
    {
        auto const rounder = _mm256_set1_pd(0x1.8p12);
        for (int quarter = 0; quarter < 4; ++quarter) {
            auto half = quarter < 2 ? v.low : v.high;
            auto part = quarter % 2 == 0 ? _mm256_castps256_ps128(half) : _mm256_extractf128_ps(half, 1);
            auto sum = _mm256_castpd_si256(_mm256_add_pd(_mm256_cvtps_pd(part), rounder));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 4 * quarter),
                                _mm256_sub_epi64(sum, _mm256_castpd_si256(rounder)));
        }
    }

private:
    static std::uint32_t bits(__m256 low, __m256 high) noexcept
    {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(low)) |
               static_cast<std::uint32_t>(_mm256_movemask_ps(high)) << 8;
    }
    static __m256i spread(std::uint32_t bits) noexcept
    {
        auto const each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        auto one = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each);
        return _mm256_cmpeq_epi32(one, each);
    }
    static void multiply(__m256i a, __m256i b, __m256i& high, __m256i& low) noexcept
    {
        auto even = _mm256_mul_epu32(a, b);
        auto odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
        low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0b10101010);
        high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0b10101010);
    }
};

} // namespace plait::host::avx2
