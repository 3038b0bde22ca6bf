#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string>
#include <string_view>

namespace plait {
namespace {

// GPT-2. Source: Radford et al., Language models are unsupervised multitask learners (2019).
constexpr family_layout layout{.norm = norm_kind::layer,
                               .norm_bias = presence::required,
                               .rope = rope_style::none,
                               .activation = activation_kind::gelu_tanh,
                               .gated = false,
                               .fused_qkv = true,
                               .qkv_bias = presence::required,
                               .output_bias = presence::required,
                               .ffn_bias = presence::required};

// GPT-1 is the original transformer's decoder: the norm of each sum is the stream, and there is none at the end.
// Source: Radford et al., Improving language understanding by generative pre-training (2018).
constexpr family_layout original_layout = [] {
    auto how = layout;
    how.placement = norm_placement::post_add;
    return how;
}();

void learn_positions(described_model& model, tensor_ref const& from)
{
    model.spec.learned_positions = model.spec.context;
    model.tensors.position_embedding = from;
}

/// What both call alike. Matrices are stored as inputs by outputs.
hf_names common_names()
{
    hf_names names;
    names.width = "n_embd";
    names.layers = "n_layer";
    names.heads = "n_head";
    names.context = "n_positions";
    names.hidden = "n_inner";
    names.epsilon = "layer_norm_epsilon";
    names.layer = "h.";
    names.attention_norm = "ln_1";
    names.ffn_norm = "ln_2";
    names.qkv = "attn.c_attn";
    names.attention_output = "attn.c_proj";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    names.transposed = true;
    return names;
}

/// As OpenAI's own checkpoints have them, or as transformers saves the whole model.
std::string_view prefix_of(hf_directory const& folder, std::string const& embedding)
{
    return folder.find_tensor("transformer." + embedding + ".weight") != nullptr ? "transformer." : "";
}

described_model describe_gpt1_hf(hf_directory const& folder)
{
    auto names = common_names();
    names.activation = "afn";
    names.gelu_is_tanh = true;
    names.token_embedding = "tokens_embed";
    names.prefix = prefix_of(folder, "tokens_embed");
    names.output_norm = "h.0.ln_1"; // stands in for the one that there isn't
    auto model = hf_header(folder).describe(original_layout, names);
    model.spec.final_norm = {.kind = norm_kind::none};
    model.tensors.output_norm = {};
    learn_positions(model, std::string(names.prefix) + "positions_embed.weight");
    return model;
}

described_model describe_gpt2(gguf_file const& file)
{
    auto model = gguf_header(file).describe(layout);
    learn_positions(model, "position_embd.weight");
    return model;
}

described_model describe_gpt2_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("scale_attn_weights", true);
    header.neutral("scale_attn_by_inverse_layer_idx", false);
    header.neutral("add_cross_attention", false);
    auto names = common_names();
    names.activation = "activation_function";
    names.token_embedding = "wte";
    names.prefix = prefix_of(folder, "wte");
    names.output_norm = "ln_f";
    auto model = header.describe(layout, names);
    learn_positions(model, std::string(names.prefix) + "wpe.weight");
    return model;
}

constexpr std::array<std::string_view, 1> gpt1_architectures{"OpenAIGPTLMHeadModel"};
constexpr std::array<std::string_view, 1> gpt2_architectures{"GPT2LMHeadModel"};

} // namespace

family const families::gpt1{"", nullptr, gpt1_architectures, describe_gpt1_hf};
family const families::gpt2{"gpt2", describe_gpt2, gpt2_architectures, describe_gpt2_hf};

} // namespace plait
