#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace plait {
namespace {

// gpt-oss (OpenAI, arXiv:2508.10925): attention sinks, biases everywhere, a window in every second layer, experts with
// a clamped gate. Source of the formulas: transformers' modeling_gpt_oss.py.
constexpr family_layout layout{.activation = activation_kind::swiglu_clamped,
                               .qkv_bias = presence::required,
                               .output_bias = presence::required,
                               .sinks = presence::required,
                               .scoring = routing::softmax_of_chosen,
                               .router_bias = presence::required,
                               .expert_bias = presence::required};

described_model describe_gguf(gguf_file const& file)
{
    auto model = gguf_header(file).describe(layout, {.ffn_norm = "post_attention_norm"});
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i)
        if (ends_interval(i, 2)) model.spec.layers[i].attention.window = 0;
    return model;
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    hf_names names;
    names.activation = "swiglu"; // no field: hidden_act says silu, which is a part of it
    names.expert_hidden = names.hidden;
    names.router = "mlp.router";
    names.experts_stacked = true;
    auto model = header.describe(layout, names);
    header.set_windows(model, 2);
    for (auto& layer : model.spec.layers) {
        layer.ffn.alpha = header.positive_or("swiglu_alpha", layer.ffn.alpha);
        layer.ffn.limit = header.positive_or("swiglu_limit", layer.ffn.limit);
    }
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"GptOssForCausalLM"};

} // namespace

family const families::gpt_oss{"gpt-oss", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
