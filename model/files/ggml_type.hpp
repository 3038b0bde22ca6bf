#pragma once

#include <plait/kernels/host/types.hpp>

#include <array>
#include <cstddef>
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

/// The layouts by type number. A block of 0 columns marks a number that ggml removed. Source: ggml-common.h.
inline constexpr std::array<ggml_layout, 42> ggml_layouts = [] {
    std::array<ggml_layout, 42> t{};
    auto set = [&](ggml_type type, std::string_view name, std::uint32_t block, std::uint32_t bytes) {
        t[static_cast<std::size_t>(type)] = {name, block, bytes};
    };
    set(ggml_type::f32, "F32", 1, 4);
    set(ggml_type::f16, "F16", 1, 2);
    set(ggml_type::q4_0, "Q4_0", 32, 18);
    set(ggml_type::q4_1, "Q4_1", 32, 20);
    set(ggml_type::q5_0, "Q5_0", 32, 22);
    set(ggml_type::q5_1, "Q5_1", 32, 24);
    set(ggml_type::q8_0, "Q8_0", 32, 34);
    set(ggml_type::q8_1, "Q8_1", 32, 36);
    set(ggml_type::q2_k, "Q2_K", 256, 84);
    set(ggml_type::q3_k, "Q3_K", 256, 110);
    set(ggml_type::q4_k, "Q4_K", 256, 144);
    set(ggml_type::q5_k, "Q5_K", 256, 176);
    set(ggml_type::q6_k, "Q6_K", 256, 210);
    set(ggml_type::q8_k, "Q8_K", 256, 292);
    set(ggml_type::iq2_xxs, "IQ2_XXS", 256, 66);
    set(ggml_type::iq2_xs, "IQ2_XS", 256, 74);
    set(ggml_type::iq3_xxs, "IQ3_XXS", 256, 98);
    set(ggml_type::iq1_s, "IQ1_S", 256, 50);
    set(ggml_type::iq4_nl, "IQ4_NL", 32, 18);
    set(ggml_type::iq3_s, "IQ3_S", 256, 110);
    set(ggml_type::iq2_s, "IQ2_S", 256, 82);
    set(ggml_type::iq4_xs, "IQ4_XS", 256, 136);
    set(ggml_type::i8, "I8", 1, 1);
    set(ggml_type::i16, "I16", 1, 2);
    set(ggml_type::i32, "I32", 1, 4);
    set(ggml_type::i64, "I64", 1, 8);
    set(ggml_type::f64, "F64", 1, 8);
    set(ggml_type::iq1_m, "IQ1_M", 256, 56);
    set(ggml_type::bf16, "BF16", 1, 2);
    set(ggml_type::tq1_0, "TQ1_0", 256, 54);
    set(ggml_type::tq2_0, "TQ2_0", 256, 66);
    set(ggml_type::mxfp4, "MXFP4", 32, 17);
    set(ggml_type::nvfp4, "NVFP4", 64, 36);
    set(ggml_type::q1_0, "Q1_0", 128, 18);
    return t;
}();

/// The layout of type number `type`, or null where the number is unknown or its type was removed from ggml.
constexpr ggml_layout const* find_layout(std::uint32_t type) noexcept
{
    return type < ggml_layouts.size() && ggml_layouts[type].block != 0 ? &ggml_layouts[type] : nullptr;
}

/// The layout of a type of the enumeration.
constexpr ggml_layout const& layout(ggml_type type) noexcept
{
    return ggml_layouts[static_cast<std::size_t>(type)];
}

/// The format in which plait computes with `type`, or nothing where it cannot.
std::optional<weight_format> computable(ggml_type type) noexcept;

} // namespace plait
