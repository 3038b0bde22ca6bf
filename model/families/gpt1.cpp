#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string>
#include <string_view>

namespace plait {
namespace {

// The original transformer's decoder: the norm of each sum is the stream, and there is none at the end. Matrices are
// stored as inputs by outputs. Source: Radford et al., Improving language understanding by generative pre-training
// (2018).
constexpr family_layout layout{.norm = norm_kind::layer,
                               .norm_bias = presence::required,
                               .placement = norm_placement::post_add,
                               .rope = rope_style::none,
                               .activation = activation_kind::gelu_tanh,
                               .gated = false,
                               .fused_qkv = true,
                               .qkv_bias = presence::required,
                               .output_bias = presence::required,
                               .ffn_bias = presence::required};

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    hf_names names;
    names.width = "n_embd";
    names.layers = "n_layer";
    names.heads = "n_head";
    names.context = "n_positions";
    names.hidden = "n_inner";
    names.epsilon = "layer_norm_epsilon";
    names.activation = "afn";
    names.gelu_is_tanh = true;
    names.prefix = folder.find_tensor("transformer.tokens_embed.weight") != nullptr ? "transformer." : "";
    names.layer = "h.";
    names.token_embedding = "tokens_embed";
    names.output_norm = "h.0.ln_1"; // stands in for the one that there isn't
    names.attention_norm = "ln_1";
    names.ffn_norm = "ln_2";
    names.qkv = "attn.c_attn";
    names.attention_output = "attn.c_proj";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    names.transposed = true;
    auto model = header.describe(layout, names);
    model.spec.final_norm = {.kind = norm_kind::none};
    model.tensors.output_norm = {};
    model.spec.learned_positions = model.spec.context;
    model.tensors.position_embedding = std::string(names.prefix) + "positions_embed.weight";
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"OpenAIGPTLMHeadModel"};

} // namespace

family const families::gpt1{"", nullptr, hf_names_of_it, describe_hf};

} // namespace plait
