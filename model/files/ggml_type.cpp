#include <plait/model/files/ggml_type.hpp>

namespace plait {

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
