#include <plait/tests/support/safetensors_writer.hpp>

#include <plait/tests/support/gguf_writer.hpp>

#include <utility>

namespace plait::test {

safetensors_writer::tensor& safetensors_writer::add(std::string_view name, std::string_view dtype,
                                                    std::vector<std::uint64_t> shape, std::vector<std::byte> data)
{
    tensors.push_back({std::string(name), std::string(dtype), std::move(shape), std::move(data), {}, {}});
    return tensors.back();
}

std::string safetensors_writer::header() const
{
    std::string out = R"({"__metadata__":{"format":"pt"})";
    std::uint64_t at = 0;
    for (tensor const& t : tensors) {
        out += ",\"" + t.name + R"(":{"dtype":")" + t.dtype + R"(","shape":[)";
        for (std::size_t d = 0; d < t.shape.size(); ++d)
            out += (d == 0 ? "" : ",") + std::to_string(t.shape[d]);
        out += R"(],"data_offsets":[)" + std::to_string(t.begin.value_or(at)) + ",";
        at += t.data.size();
        out += std::to_string(t.end.value_or(at)) + "]}";
    }
    return out + "}";
}

std::vector<std::byte> safetensors_writer::bytes(std::string_view header, std::optional<std::uint64_t> length) const
{
    std::vector<std::byte> out;
    append(out, length.value_or(header.size()));
    for (char const c : header)
        append(out, c);
    for (tensor const& t : tensors)
        out.insert(out.end(), t.data.begin(), t.data.end());
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
}

} // namespace plait::test
