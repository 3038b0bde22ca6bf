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
    case weight_format::q8_0:
        return "q8_0";
    }
    return "unknown";
}

} // namespace plait
