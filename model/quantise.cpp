#include <plait/model/quantise.hpp>

#include <plait/actors/error.hpp>

#include <map>
#include <string>

namespace plait {
namespace {

ggml_type type_of(weight_format format)
{
    if (format == weight_format::q8_0) return ggml_type::q8_0;
    if (format == weight_format::q4_1) return ggml_type::q4_1;
    throw error(errc::invalid_argument, "quantize: " + std::string(name(format)) + "; q8_0 and q4_1 can be made");
}

} // namespace

void quantise(model_files& files, described_model& model, weight_format to)
{
    auto const type = type_of(to);
    std::map<std::string, ggml_type> types;
    auto const add = [&](tensor_ref const& matrix) {
        if (!matrix.empty() && !matrix.transposed) types.emplace(matrix.name, type);
    };
    auto const add_network = [&](ffn_tensors const& network) {
        add(network.gate);
        add(network.up);
        add(network.down);
    };
    auto const& names = model.tensors;
    for (auto const& ends : {names.token_embedding, names.output})
        if (!ends.empty()) types.emplace(ends.name, ggml_type::q8_0);
    for (auto const& layer : names.layers) {
        for (auto const& matrix : {layer.query, layer.key, layer.value, layer.attention_output})
            add(matrix);
        add_network(layer.ffn);
        for (auto const& expert : layer.experts)
            add_network(expert);
    }
    files.quantise(types);
    model.spec.fingerprint = files.tensors().fingerprint();
}

} // namespace plait
