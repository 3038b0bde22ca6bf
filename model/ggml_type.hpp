#pragma once

#include <plait/kernels/host/types.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace plait {

/// The tensor encodings that a GGUF file can name, with the numbers that the file uses. The gaps are types that ggml
/// removed; they and unknown numbers have no layout and are never read.
enum class ggml_type : std::uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q8_1 = 9,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    q8_k = 15,
    iq2_xxs = 16,
    iq2_xs = 17,
    iq3_xxs = 18,
    iq1_s = 19,
    iq4_nl = 20,
    iq3_s = 21,
    iq2_s = 22,
    iq4_xs = 23,
    i8 = 24,
    i16 = 25,
    i32 = 26,
    i64 = 27,
    f64 = 28,
    iq1_m = 29,
    bf16 = 30,
    tq1_0 = 34,
    tq2_0 = 35,
    mxfp4 = 39,
    nvfp4 = 40,
    q1_0 = 41,
};

/// How an encoding lays out its values: `block` consecutive columns of a row take `bytes` bytes.
struct ggml_layout {
    std::string_view name; ///< as ggml writes it, for example "Q4_K"
    std::uint32_t block = 0;
    std::uint32_t bytes = 0;
};

/// The layout of type number `type`, or null where the number is unknown or its type was removed from ggml.
ggml_layout const* find_layout(std::uint32_t type) noexcept;

/// The layout of a type of the enumeration.
ggml_layout const& layout(ggml_type type) noexcept;

/// The format in which plait computes with `type`, or nothing where it cannot.
std::optional<weight_format> computable(ggml_type type) noexcept;

} // namespace plait
