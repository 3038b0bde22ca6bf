#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

/// The elementary functions of the host kernels, in F32: one polynomial each, with every rounding written down
/// (explicit fma, no contraction), so that avx2/math.hpp and avx512/math.hpp give the same bits in every lane.
/// The polynomials are those of the Cephes library (S. L. Moshier, netlib.org/cephes: expf, logf, tanhf).
/// NaN gives NaN. Functions are static: a file compiled for a wider instruction set must never lend its copy to the
/// others through the linker.

namespace plait::host {

namespace math {

inline constexpr float infinity = std::numeric_limits<float>::infinity();

// exp: below `exp_lowest` the result would be subnormal and is 0; above `exp_highest` it is infinity.
inline constexpr float exp_lowest = -87.3f;
inline constexpr float exp_highest = 88.72f;
inline constexpr float log2_e = 1.44269504088896341f;
inline constexpr float ln2_high = 0.693359375f; // few enough bits for n * ln2_high to be exact
inline constexpr float ln2_low = -2.12194440e-4f;
inline constexpr float rounder = 12582912.0f; // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
inline constexpr float exp_poly[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                     4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

inline constexpr std::int32_t sqrt_half_bits = 0x3f3504f3;
inline constexpr float smallest_normal = std::numeric_limits<float>::min();
inline constexpr float log_poly[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                     -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                     2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};

inline constexpr float tanh_small = 0.625f;
inline constexpr float tanh_poly[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                      -3.33332819422e-1f};

// erf: (erf(x) / x - 1) in x^2 up to `erf_small`; beyond, log(1 - erf(x)) in x, whose error counts less the larger x
// is; 1 - erf(4) is less than half a unit of 1. Both least in their largest error of erf.
inline constexpr float erf_small = 1.0f;
inline constexpr float erf_most = 4.0f;
inline constexpr float erf_poly[] = {7.8538767411e-5f, -8.0101983622e-4f, 5.1883282140e-3f, -2.6853812858e-2f,
                                     1.1283585429e-1f, -3.7612625957e-1f, 1.2837916613e-1f};
inline constexpr float erfc_log_poly[] = {1.8677671324e-4f,  -2.9518741649e-3f, 2.1856302395e-2f, -1.0314794630e-1f,
                                          -6.3809359074e-1f, -1.1271225214e+0f, -3.3269281266e-4f};
inline constexpr float sqrt_half = 0.70710678118654752f;

// gelu: 2 * sqrt(2 / pi), and 0.044715 times it.
inline constexpr float gelu_linear = 1.59576912160573071f;
inline constexpr float gelu_cubic = 0.0713548162726009f;

} // namespace math

/// Adds sixteen partial sums: lane i and lane i + 8, then i and i + 4, i + 2, i + 1. Uses up `lanes`.
static inline float sum_lanes(float (&lanes)[16]) noexcept
{
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; ++i)
            lanes[i] = lanes[i] + lanes[i + width];
    return lanes[0];
}

/// e to the power of x; relative error below 2^-22.
static inline float exp(float x) noexcept
{
    if (x != x) return x;
    if (x < math::exp_lowest) return 0;
    if (x > math::exp_highest) return math::infinity;
    float shifted = std::fma(x, math::log2_e, math::rounder);
    float n = shifted - math::rounder;
    float r = std::fma(n, -math::ln2_high, x);
    r = std::fma(n, -math::ln2_low, r);
    float p = math::exp_poly[0];
    for (int i = 1; i < 6; ++i)
        p = std::fma(p, r, math::exp_poly[i]);
    p = std::fma(p, r * r, r) + 1.0f;
    // The low bits of `shifted` are n in two's complement, and its upper bits are shifted out.
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

/// The natural logarithm. Zero and subnormal numbers give -infinity, negative ones NaN.
static inline float log(float x) noexcept
{
    if (x != x) return x;
    if (x < 0) return std::numeric_limits<float>::quiet_NaN();
    if (x < math::smallest_normal) return -math::infinity;
    if (x == math::infinity) return x;
    auto bits = std::bit_cast<std::int32_t>(x);
    std::int32_t exponent = (bits - math::sqrt_half_bits) >> 23;
    float e = static_cast<float>(exponent);
    float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f; // sqrt(1/2) - 1 … sqrt(2) - 1
    float z = f * f;
    float p = math::log_poly[0];
    for (int i = 1; i < 9; ++i)
        p = std::fma(p, f, math::log_poly[i]);
    p = p * f;
    float y = std::fma(e, math::ln2_low, p * z);
    y = std::fma(z, -0.5f, y);
    return std::fma(e, math::ln2_high, f + y);
}

static inline float tanh(float x) noexcept
{
    if (x != x) return x;
    float magnitude = std::fabs(x);
    if (magnitude < math::tanh_small) {
        float z = x * x;
        float p = math::tanh_poly[0];
        for (int i = 1; i < 5; ++i)
            p = std::fma(p, z, math::tanh_poly[i]);
        return std::fma(p * z, x, x);
    }
    return std::copysign(1.0f - 2.0f / (exp(magnitude + magnitude) + 1.0f), x);
}

/// The error function; relative error below 2^-22.
static inline float erf(float x) noexcept
{
    if (x != x) return x;
    float magnitude = std::fabs(x);
    if (magnitude < math::erf_small) {
        float z = x * x;
        float p = math::erf_poly[0];
        for (int i = 1; i < 7; ++i)
            p = std::fma(p, z, math::erf_poly[i]);
        return std::fma(p, x, x);
    }
    float t = magnitude < math::erf_most ? magnitude : math::erf_most;
    float p = math::erfc_log_poly[0];
    for (int i = 1; i < 7; ++i)
        p = std::fma(p, t, math::erfc_log_poly[i]);
    return std::copysign(1.0f - exp(p), x);
}

/// x * sigmoid(x).
static inline float silu(float x) noexcept
{
    return x / (1.0f + exp(-x));
}

/// The tanh approximation of x * Phi(x) (Hendrycks and Gimpel, arXiv:1606.08415): 0.5 x (1 + tanh(u)) is
/// x * sigmoid(2u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
static inline float gelu_tanh(float x) noexcept
{
    float twice_u = x * std::fma(math::gelu_cubic, x * x, math::gelu_linear);
    return x / (1.0f + exp(-twice_u));
}

/// x * Phi(x) = (x / 2) * (1 + erf(x * sqrt(1/2))).
static inline float gelu_erf(float x) noexcept
{
    return (x * 0.5f) * (1.0f + erf(x * math::sqrt_half));
}

} // namespace plait::host
