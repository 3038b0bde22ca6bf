#pragma once

#include <bit>
#include <cstdint>

/// 16-bit floating-point numbers as plain C++, with the same bits as the processor's own conversions (F16C, NEON):
/// to nearest, ties to even; subnormals kept; a NaN stays one, made quiet, with the upper bits of its payload.
/// Static on purpose: a file compiled for a wider instruction set must never lend its copy to the others.
namespace plait::host {

/// The value of an IEEE binary16 number; exact.
static constexpr float f16_to_f32(std::uint16_t half) noexcept
{
    auto sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    auto exponent = (half >> 10) & 0x1fu;
    auto mantissa = static_cast<std::uint32_t>(half & 0x3ffu);
    if (exponent == 0) {
        // Zero and subnormals: mantissa * 2^-24, exact in F32.
        auto magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0u));
    return std::bit_cast<float>(sign | (exponent + 112u) << 23 | mantissa << 13);
}

/// The IEEE binary16 number nearest to `value`.
static constexpr std::uint16_t f32_to_f16(float value) noexcept
{
    auto bits = std::bit_cast<std::uint32_t>(value);
    auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    auto magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u); // 65520 and up round to infinity
    if (magnitude < 0x38800000u) {
        // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded by the addition itself.
        auto shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    auto rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

/// The value of a bfloat16 number; exact.
static constexpr float bf16_to_f32(std::uint16_t half) noexcept
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// The bfloat16 number nearest to `value`.
static constexpr std::uint16_t f32_to_bf16(float value) noexcept
{
    auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// 2^(exponent - 128), half of what an E8M0 exponent stands for: the scale of FP4 values that are doubled. Exact, the
/// subnormal 2^-128 and 2^-127 included.
static constexpr float e8m0_half_to_f32(std::uint8_t exponent) noexcept
{
    auto bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23;
    return std::bit_cast<float>(bits);
}

} // namespace plait::host
