#include <plait/model/ggml_type.hpp>

#include <array>

namespace plait {
namespace {

constexpr std::size_t type_count = 42;

/// Source: ggml-common.h. A block of 0 columns marks a number that ggml removed.
constexpr std::array<ggml_layout, type_count> layouts = [] {
    std::array<ggml_layout, type_count> t{};
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

} // namespace

ggml_layout const* find_layout(std::uint32_t type) noexcept
{
    return type < type_count && layouts[type].block != 0 ? &layouts[type] : nullptr;
}

ggml_layout const& layout(ggml_type type) noexcept
{
    return layouts[static_cast<std::size_t>(type)];
}

std::optional<weight_format> computable(ggml_type type) noexcept
{
    switch (type) {
    case ggml_type::f32:
        return weight_format::f32;
    case ggml_type::f16:
        return weight_format::f16;
    case ggml_type::bf16:
        return weight_format::bf16;
    case ggml_type::q4_0:
        return weight_format::q4_0;
    case ggml_type::q4_1:
        return weight_format::q4_1;
    case ggml_type::q8_0:
        return weight_format::q8_0;
    default:
        return std::nullopt;
    }
}

} // namespace plait
