#pragma once

#include <plait/kernels/host/avx512/intrinsics.hpp>
#include <plait/kernels/host/math.hpp>

/// math.hpp in 16 lanes: the same operations in the same order, so the same bits. Include it only from files compiled
/// for the instruction set.

namespace plait::host {

static inline __m512 exp(__m512 x) noexcept
{
    auto const rounder = _mm512_set1_ps(math::rounder);
    auto const one = _mm512_set1_ps(1.0f);
    auto shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(math::log2_e), rounder);
    auto n = _mm512_sub_ps(shifted, rounder);
    auto r = _mm512_fmadd_ps(n, _mm512_set1_ps(-math::ln2_high), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-math::ln2_low), r);
    auto p = _mm512_set1_ps(math::exp_poly[0]);
    for (int i = 1; i < 6; ++i)
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(math::exp_poly[i]));
    p = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), one);
    auto y = _mm512_scalef_ps(p, n); // p * 2^n, and NaN stays NaN
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(math::exp_highest), _CMP_GT_OQ),
                           _mm512_set1_ps(math::infinity));
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(math::exp_lowest), _CMP_NLT_UQ), y);
}

static inline __m512 log(__m512 x) noexcept
{
    auto bits = _mm512_castps_si512(x);
    auto exponent = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(math::sqrt_half_bits)), 23);
    auto e = _mm512_cvtepi32_ps(exponent);
    auto f = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(exponent, 23))),
                           _mm512_set1_ps(1.0f));
    auto z = _mm512_mul_ps(f, f);
    auto p = _mm512_set1_ps(math::log_poly[0]);
    for (int i = 1; i < 9; ++i)
        p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(math::log_poly[i]));
    p = _mm512_mul_ps(p, f);
    auto y = _mm512_fmadd_ps(e, _mm512_set1_ps(math::ln2_low), _mm512_mul_ps(p, z));
    y = _mm512_fmadd_ps(z, _mm512_set1_ps(-0.5f), y);
    y = _mm512_fmadd_ps(e, _mm512_set1_ps(math::ln2_high), _mm512_add_ps(f, y));
    auto const zero = _mm512_setzero_ps();
    auto const infinity = _mm512_set1_ps(math::infinity);
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, infinity, _CMP_EQ_OQ), infinity);
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(math::smallest_normal), _CMP_LT_OQ),
                           _mm512_set1_ps(-math::infinity));
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ),
                           _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN()));
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static inline __m512 tanh(__m512 x) noexcept
{
    auto const one = _mm512_set1_ps(1.0f);
    auto z = _mm512_mul_ps(x, x);
    auto p = _mm512_set1_ps(math::tanh_poly[0]);
    for (int i = 1; i < 5; ++i)
        p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(math::tanh_poly[i]));
    auto small = _mm512_fmadd_ps(_mm512_mul_ps(p, z), x, x);
    auto magnitude = _mm512_abs_ps(x);
    auto large = _mm512_sub_ps(
        one, _mm512_div_ps(_mm512_set1_ps(2.0f), _mm512_add_ps(exp(_mm512_add_ps(magnitude, magnitude)), one)));
    large = _mm512_or_ps(large, _mm512_and_ps(x, _mm512_set1_ps(-0.0f)));
    auto y =
        _mm512_mask_mov_ps(large, _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(math::tanh_small), _CMP_LT_OQ), small);
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static inline __m512 erf(__m512 x) noexcept
{
    auto const sign = _mm512_set1_ps(-0.0f);
    auto z = _mm512_mul_ps(x, x);
    auto p = _mm512_set1_ps(math::erf_poly[0]);
    for (int i = 1; i < 7; ++i)
        p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(math::erf_poly[i]));
    auto small = _mm512_fmadd_ps(p, x, x);
    auto magnitude = _mm512_andnot_ps(sign, x);
    auto t = _mm512_min_ps(magnitude, _mm512_set1_ps(math::erf_most));
    p = _mm512_set1_ps(math::erfc_log_poly[0]);
    for (int i = 1; i < 7; ++i)
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(math::erfc_log_poly[i]));
    auto large = _mm512_or_ps(_mm512_sub_ps(_mm512_set1_ps(1.0f), exp(p)), _mm512_and_ps(x, sign));
    auto y =
        _mm512_mask_mov_ps(large, _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(math::erf_small), _CMP_LT_OQ), small);
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static inline __m512 silu(__m512 x) noexcept
{
    auto minus = _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp(minus)));
}

static inline __m512 gelu_tanh(__m512 x) noexcept
{
    auto inner =
        _mm512_fmadd_ps(_mm512_set1_ps(math::gelu_cubic), _mm512_mul_ps(x, x), _mm512_set1_ps(math::gelu_linear));
    auto minus = _mm512_xor_ps(_mm512_mul_ps(x, inner), _mm512_set1_ps(-0.0f));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp(minus)));
}

static inline __m512 gelu_erf(__m512 x) noexcept
{
    auto sum = _mm512_add_ps(_mm512_set1_ps(1.0f), erf(_mm512_mul_ps(x, _mm512_set1_ps(math::sqrt_half))));
    return _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(0.5f)), sum);
}

} // namespace plait::host
