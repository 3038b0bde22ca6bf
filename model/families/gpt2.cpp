#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string>
#include <string_view>

namespace plait {
namespace {

// Source: Radford et al., Language models are unsupervised multitask learners (2019).
constexpr family_layout layout{.norm = norm_kind::layer,
                               .norm_bias = presence::required,
                               .rope = rope_style::none,
                               .activation = activation_kind::gelu_tanh,
                               .gated = false,
                               .fused_qkv = true,
                               .qkv_bias = presence::required,
                               .output_bias = presence::required,
                               .ffn_bias = presence::required};

described_model describe_gguf(gguf_file const& file)
{
    auto model = gguf_header(file).describe(layout);
    model.spec.learned_positions = model.spec.context;
    model.tensors.position_embedding = "position_embd.weight";
    return model;
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("scale_attn_weights", true);
    header.neutral("scale_attn_by_inverse_layer_idx", false);
    header.neutral("add_cross_attention", false);
    hf_names names;
    names.width = "n_embd";
    names.layers = "n_layer";
    names.heads = "n_head";
    names.context = "n_positions";
    names.hidden = "n_inner";
    names.epsilon = "layer_norm_epsilon";
    names.activation = "activation_function";
    // As OpenAI's own checkpoint has them, or as transformers saves the whole model.
    names.prefix = folder.find_tensor("transformer.wte.weight") != nullptr ? "transformer." : "";
    names.layer = "h.";
    names.token_embedding = "wte";
    names.output_norm = "ln_f";
    names.attention_norm = "ln_1";
    names.ffn_norm = "ln_2";
    names.qkv = "attn.c_attn";
    names.attention_output = "attn.c_proj";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    names.transposed = true;
    auto model = header.describe(layout, names);
    model.spec.learned_positions = model.spec.context;
    model.tensors.position_embedding = std::string(names.prefix) + "wpe.weight";
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"GPT2LMHeadModel"};

} // namespace

family const families::gpt2{"gpt2", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
