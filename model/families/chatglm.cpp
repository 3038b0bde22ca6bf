#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <cmath>
#include <string_view>

namespace plait {
namespace {

// ChatGLM-6B (GLM-130B, arXiv:2210.02414, in small): a prompt's tokens but the last see each other, a position is one
// of the prompt and one of what follows it, and a sublayer adds to its scaled normed input.
constexpr family_layout first_layout{.norm = norm_kind::layer,
                                     .norm_bias = presence::required,
                                     .placement = norm_placement::input,
                                     .rope = rope_style::two_halves,
                                     .activation = activation_kind::gelu_tanh,
                                     .gated = false,
                                     .fused_qkv = true,
                                     .qkv_bias = presence::required,
                                     .output_bias = presence::required,
                                     .ffn_bias = presence::required};

// ChatGLM2, ChatGLM3 and GLM-4-9B as first published: what glm.cpp describes under other names.
constexpr family_layout layout{.rope = rope_style::pairs,
                               .rotated = 0.5,
                               .fused_qkv = true,
                               .fused_gate_up = true,
                               .qkv_bias = presence::optional};

hf_names common_names()
{
    hf_names names;
    names.layers = "num_layers";
    names.epsilon = "layernorm_epsilon";
    names.prefix = "transformer.";
    names.down = "mlp.dense_4h_to_h";
    return names;
}

described_model describe_first(hf_header const& header)
{
    header.neutral("position_encoding_2d", true);
    auto names = common_names();
    names.context = "max_sequence_length";
    names.hidden = "inner_hidden_size";
    names.token_embedding = "word_embeddings";
    names.output_norm = "final_layernorm";
    names.qkv = "attention.query_key_value";
    names.qkv_by_head = true;
    names.attention_output = "attention.dense";
    names.up = "mlp.dense_h_to_4h";
    auto model = header.describe(first_layout, names);
    model.spec.prefix = true;
    // sqrt(2 * layers) of the published model's 28: its code never gives a layer another number.
    for (auto& layer : model.spec.layers)
        layer.residual_scale = std::sqrt(2.0f * 28);
    return model;
}

described_model describe_later(hf_header const& header)
{
    header.neutral("rmsnorm", true);
    header.neutral("post_layer_norm", true);
    header.neutral("original_rope", true);
    header.neutral("add_bias_linear", false);
    header.neutral("interleaved_qkv", false);
    header.neutral("apply_residual_connection_post_layernorm", false);
    auto names = common_names();
    names.context = "seq_length";
    names.vocabulary = "padded_vocab_size";
    names.hidden = "ffn_hidden_size";
    names.head_dim = "kv_channels";
    if (header.config().boolean("multi_query_attention", false)) names.kv_heads = "multi_query_group_num";
    names.layer = "encoder.layers.";
    names.token_embedding = "embedding.word_embeddings";
    names.output_norm = "encoder.final_layernorm";
    names.output = "transformer.output_layer";
    names.qkv = "self_attention.query_key_value";
    names.attention_output = "self_attention.dense";
    names.gate_up = "mlp.dense_h_to_4h";
    auto model = header.describe(layout, names);
    for (auto& layer : model.spec.layers)
        layer.attention.rope.base *= header.positive_or("rope_ratio", 1);
    return model;
}

/// The generations share their name; only the first has the other positions.
described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    return header.config().has("position_encoding_2d") ? describe_first(header) : describe_later(header);
}

constexpr std::array<std::string_view, 2> hf_names_of_it{"ChatGLMModel", "ChatGLMForConditionalGeneration"};

} // namespace

family const families::chatglm{"", nullptr, hf_names_of_it, describe_hf};

} // namespace plait
