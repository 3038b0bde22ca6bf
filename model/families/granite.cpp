#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// A LLaMA with four multipliers: of the embedding, the scores, what sublayers add, and the logits.
constexpr family_layout layout{
    .qkv_bias = presence::optional, .output_bias = presence::optional, .ffn_bias = presence::optional};

described_model describe_gguf(gguf_file const& file)
{
    gguf_header const header(file);
    auto model = header.describe(permuted(layout));
    model.spec.logit_scale = 1 / header.positive_or("logit_scale", 1);
    for (auto& layer : model.spec.layers)
        layer.output_scale = header.positive_or("residual_scale", 1);
    return model;
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    model.spec.embedding_scale = header.positive_or("embedding_multiplier", 1);
    model.spec.logit_scale = 1 / header.positive_or("logits_scaling", 1);
    for (auto& layer : model.spec.layers) {
        layer.attention.scale = header.positive_or("attention_multiplier", 1);
        layer.output_scale = header.positive_or("residual_multiplier", 1);
    }
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"GraniteForCausalLM"};

} // namespace

family const families::granite{"granite", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
