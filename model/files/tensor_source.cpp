#include <plait/model/files/tensor_source.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

namespace plait {

std::string shape(stored_tensor const& tensor)
{
    std::string out = "[";
    for (unsigned d = 0; d < tensor.rank; ++d)
        out += (d == 0 ? "" : ", ") + std::to_string(tensor.dims[d]);
    return out + "]";
}

stored_tensor const& tensor_source::tensor(std::string_view name) const
{
    if (stored_tensor const* found = find_tensor(name)) return *found;
    throw error(errc::bad_file, source() + ": tensor " + quote(name) + ": missing");
}

weight_format tensor_source::format(stored_tensor const& tensor) const
{
    if (auto const format = computable(tensor.type)) return *format;
    throw error(errc::unsupported, source() + ": tensor " + quote(tensor.name) + ": type " +
                                       std::string(layout(tensor.type).name) +
                                       " cannot be computed with; F32, F16, BF16, Q4_0, Q4_1 and Q8_0 can");
}

} // namespace plait
