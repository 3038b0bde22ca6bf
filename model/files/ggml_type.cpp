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
    case ggml_type::q5_0:
        return weight_format::q5_0;
    case ggml_type::q5_1:
        return weight_format::q5_1;
    case ggml_type::q8_0:
        return weight_format::q8_0;
    case ggml_type::q2_k:
        return weight_format::q2_k;
    case ggml_type::q3_k:
        return weight_format::q3_k;
    case ggml_type::q4_k:
        return weight_format::q4_k;
    case ggml_type::q5_k:
        return weight_format::q5_k;
    case ggml_type::q6_k:
        return weight_format::q6_k;
    case ggml_type::iq4_nl:
        return weight_format::iq4_nl;
    case ggml_type::iq4_xs:
        return weight_format::iq4_xs;
    case ggml_type::mxfp4:
        return weight_format::mxfp4;
    default:
        return std::nullopt;
    }
}

} // namespace plait
