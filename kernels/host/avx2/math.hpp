#pragma once

#include <plait/kernels/host/math.hpp>

#include <immintrin.h>

/// math.hpp in 8 lanes: the same operations in the same order, so the same bits. Include it only from files compiled
/// for the instruction set.

namespace plait::host {

static inline __m256 exp(__m256 x) noexcept
{
    auto const rounder = _mm256_set1_ps(math::rounder);
    auto const one = _mm256_set1_ps(1.0f);
    auto shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(math::log2_e), rounder);
    auto n = _mm256_sub_ps(shifted, rounder);
    auto r = _mm256_fmadd_ps(n, _mm256_set1_ps(-math::ln2_high), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-math::ln2_low), r);
    auto p = _mm256_set1_ps(math::exp_poly[0]);
    for (int i = 1; i < 6; ++i)
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(math::exp_poly[i]));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), one);
    auto y = _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(math::infinity),
                         _mm256_cmp_ps(x, _mm256_set1_ps(math::exp_highest), _CMP_GT_OQ));
    y = _mm256_and_ps(y, _mm256_cmp_ps(x, _mm256_set1_ps(math::exp_lowest), _CMP_NLT_UQ));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 log(__m256 x) noexcept
{
    auto bits = _mm256_castps_si256(x);
    auto exponent = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(math::sqrt_half_bits)), 23);
    auto e = _mm256_cvtepi32_ps(exponent);
    auto f = _mm256_sub_ps(_mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23))),
                           _mm256_set1_ps(1.0f));
    auto z = _mm256_mul_ps(f, f);
    auto p = _mm256_set1_ps(math::log_poly[0]);
    for (int i = 1; i < 9; ++i)
        p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(math::log_poly[i]));
    p = _mm256_mul_ps(p, f);
    auto y = _mm256_fmadd_ps(e, _mm256_set1_ps(math::ln2_low), _mm256_mul_ps(p, z));
    y = _mm256_fmadd_ps(z, _mm256_set1_ps(-0.5f), y);
    y = _mm256_fmadd_ps(e, _mm256_set1_ps(math::ln2_high), _mm256_add_ps(f, y));
    auto const infinity = _mm256_set1_ps(math::infinity);
    y = _mm256_blendv_ps(y, infinity, _mm256_cmp_ps(x, infinity, _CMP_EQ_OQ));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(-math::infinity),
                         _mm256_cmp_ps(x, _mm256_set1_ps(math::smallest_normal), _CMP_LT_OQ));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN()),
                         _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 tanh(__m256 x) noexcept
{
    auto const one = _mm256_set1_ps(1.0f);
    auto const sign = _mm256_set1_ps(-0.0f);
    auto z = _mm256_mul_ps(x, x);
    auto p = _mm256_set1_ps(math::tanh_poly[0]);
    for (int i = 1; i < 5; ++i)
        p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(math::tanh_poly[i]));
    auto small = _mm256_fmadd_ps(_mm256_mul_ps(p, z), x, x);
    auto magnitude = _mm256_andnot_ps(sign, x);
    auto large = _mm256_sub_ps(
        one, _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(exp(_mm256_add_ps(magnitude, magnitude)), one)));
    large = _mm256_or_ps(large, _mm256_and_ps(x, sign));
    auto y = _mm256_blendv_ps(large, small, _mm256_cmp_ps(magnitude, _mm256_set1_ps(math::tanh_small), _CMP_LT_OQ));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 erf(__m256 x) noexcept
{
    auto const sign = _mm256_set1_ps(-0.0f);
    auto z = _mm256_mul_ps(x, x);
    auto p = _mm256_set1_ps(math::erf_poly[0]);
    for (int i = 1; i < 7; ++i)
        p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(math::erf_poly[i]));
    auto small = _mm256_fmadd_ps(p, x, x);
    auto magnitude = _mm256_andnot_ps(sign, x);
    auto t = _mm256_min_ps(magnitude, _mm256_set1_ps(math::erf_most));
    p = _mm256_set1_ps(math::erfc_log_poly[0]);
    for (int i = 1; i < 7; ++i)
        p = _mm256_fmadd_ps(p, t, _mm256_set1_ps(math::erfc_log_poly[i]));
    auto large = _mm256_or_ps(_mm256_sub_ps(_mm256_set1_ps(1.0f), exp(p)), _mm256_and_ps(x, sign));
    auto y = _mm256_blendv_ps(large, small, _mm256_cmp_ps(magnitude, _mm256_set1_ps(math::erf_small), _CMP_LT_OQ));
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static inline __m256 silu(__m256 x) noexcept
{
    auto minus = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp(minus)));
}

static inline __m256 gelu_tanh(__m256 x) noexcept
{
    auto inner =
        _mm256_fmadd_ps(_mm256_set1_ps(math::gelu_cubic), _mm256_mul_ps(x, x), _mm256_set1_ps(math::gelu_linear));
    auto minus = _mm256_xor_ps(_mm256_mul_ps(x, inner), _mm256_set1_ps(-0.0f));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp(minus)));
}

static inline __m256 gelu_erf(__m256 x) noexcept
{
    auto sum = _mm256_add_ps(_mm256_set1_ps(1.0f), erf(_mm256_mul_ps(x, _mm256_set1_ps(math::sqrt_half))));
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_set1_ps(0.5f)), sum);
}

} // namespace plait::host
