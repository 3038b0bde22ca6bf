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

std::string_view type_name(stored_tensor const& tensor) noexcept
{
    return tensor.foreign_type.empty() ? layout(tensor.type).name : tensor.foreign_type;
}

stored_tensor const& tensor_source::tensor(std::string_view name) const
{
    if (stored_tensor const* found = find_tensor(name)) return *found;
    throw error(errc::bad_file, source() + ": tensor " + quote(name) + ": missing");
}

void tensor_source::check_range(stored_tensor const& tensor, std::uint64_t offset, std::uint64_t bytes) const
{
    if (offset > tensor.bytes || bytes > tensor.bytes - offset)
        throw error(errc::invalid_argument, source() + ": tensor " + quote(tensor.name) + ": " + std::to_string(bytes) +
                                                " bytes from byte " + std::to_string(offset) + " are not inside its " +
                                                std::to_string(tensor.bytes));
}

namespace {

/// The names of the types that plait computes with.
std::string computable_types()
{
    std::string out;
    for (std::uint32_t type = 0; type < ggml_layouts.size(); ++type)
        if (find_layout(type) != nullptr && computable(static_cast<ggml_type>(type)))
            out += (out.empty() ? "" : ", ") + std::string(ggml_layouts[type].name);
    return out;
}

} // namespace

weight_format tensor_source::format(stored_tensor const& tensor) const
{
    auto const format = tensor.foreign_type.empty() ? computable(tensor.type) : std::nullopt;
    if (format) return *format;
    throw error(errc::unsupported, source() + ": tensor " + quote(tensor.name) + ": type " +
                                       std::string(type_name(tensor)) +
                                       " cannot be computed with; these can: " + computable_types());
}

} // namespace plait
