#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {
namespace {

// Every fourth layer has no rotation.
constexpr family_layout layout{
    .qkv_bias = presence::optional, .output_bias = presence::optional, .ffn_bias = presence::optional};

described_model describe_gguf(gguf_file const& file)
{
    auto model = gguf_header(file).describe(permuted(layout));
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i)
        if (ends_interval(i, 4)) model.spec.layers[i].attention.rope = {};
    return model;
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    header.set_switched_windows(model);
    auto const interval = header.size_or("no_rope_layer_interval", 4);
    std::vector<std::int64_t> listed; // 1: the layer rotates, whatever the name says
    if (header.config().has("no_rope_layers")) {
        listed = header.config().integers("no_rope_layers");
        if (listed.size() != model.spec.layers.size())
            header.fail("no_rope_layers", std::to_string(listed.size()) + " values for " +
                                              std::to_string(model.spec.layers.size()) + " layers");
    }
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i)
        if (listed.empty() ? ends_interval(i, interval) : listed[i] == 0) model.spec.layers[i].attention.rope = {};
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"SmolLM3ForCausalLM"};

} // namespace

family const families::smollm3{"smollm3", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
