#include <plait/kernels/host/types.hpp>

namespace plait {

std::string_view name(weight_format format) noexcept
{
    switch (format) {
    case weight_format::f32:
        return "f32";
    case weight_format::f16:
        return "f16";
    case weight_format::bf16:
        return "bf16";
    case weight_format::q4_0:
        return "q4_0";
    case weight_format::q4_1:
        return "q4_1";
    case weight_format::q5_0:
        return "q5_0";
    case weight_format::q5_1:
        return "q5_1";
    case weight_format::q8_0:
        return "q8_0";
    case weight_format::q2_k:
        return "q2_k";
    case weight_format::q3_k:
        return "q3_k";
    case weight_format::q4_k:
        return "q4_k";
    case weight_format::q5_k:
        return "q5_k";
    case weight_format::q6_k:
        return "q6_k";
    case weight_format::iq4_nl:
        return "iq4_nl";
    case weight_format::iq4_xs:
        return "iq4_xs";
    case weight_format::mxfp4:
        return "mxfp4";
    }
    return "unknown";
}

} // namespace plait
