#pragma once

#include <plait/model/families/family.hpp>
#include <plait/model/families/family_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// How a family's folders call things; as LLaMA's do unless it says otherwise.
struct hf_names {
    // Fields of the config.
    std::string_view width = "hidden_size";
    std::string_view layers = "num_hidden_layers";
    std::string_view heads = "num_attention_heads";
    std::string_view kv_heads = "num_key_value_heads"; ///< absent: as many as heads
    std::string_view head_dim = "head_dim";            ///< absent: width / heads
    std::string_view vocabulary = "vocab_size";
    std::string_view context = "max_position_embeddings";
    std::string_view hidden = "intermediate_size";
    std::string_view epsilon = "rms_norm_eps";
    std::string_view activation = "hidden_act";
    std::string_view expert_hidden = "moe_intermediate_size";
    bool gelu_is_tanh = false; ///< "gelu" means the approximation

    // Tensors, without ".weight" and ".bias". Layer i's begin with prefix + layer + i + ".".
    std::string_view prefix = "model.";
    std::string_view layer = "layers.";
    std::string_view token_embedding = "embed_tokens";
    std::string_view output_norm = "norm";
    std::string_view output = "lm_head"; ///< without the prefix
    std::string_view attention_norm = "input_layernorm";
    std::string_view attention_output_norm = "post_attention_layernorm";
    std::string_view ffn_norm = "post_attention_layernorm";
    std::string_view ffn_output_norm = "post_feedforward_layernorm";
    std::string_view query = "self_attn.q_proj";
    std::string_view key = "self_attn.k_proj";
    std::string_view value = "self_attn.v_proj";
    std::string_view qkv = "self_attn.qkv_proj"; ///< where they are fused
    std::string_view attention_output = "self_attn.o_proj";
    std::string_view query_norm = "self_attn.q_norm";
    std::string_view key_norm = "self_attn.k_norm";
    std::string_view gate = "mlp.gate_proj";
    std::string_view up = "mlp.up_proj";
    std::string_view gate_up = "mlp.gate_up_proj"; ///< where they are fused
    std::string_view down = "mlp.down_proj";
    std::string_view sinks = "self_attn.sinks"; ///< the whole name, as are the selection bias and stacked experts
    std::string_view router = "mlp.gate";
    std::string_view selection_bias = "mlp.gate.e_score_correction_bias";
    std::string_view experts = "mlp.experts"; ///< each in tensors of its own, below its number
    std::string_view expert_gate = "gate_proj";
    std::string_view expert_up = "up_proj";
    std::string_view expert_down = "down_proj";
    std::string_view shared_expert = "mlp.shared_experts";
    bool experts_stacked = false; ///< all in one tensor: gate_up_proj, whose features take turns, and down_proj
    bool transposed = false;      ///< matrices of layers are stored as inputs × outputs
    bool qkv_by_head = false;     ///< fused ones: a head's query, key and value, then the next head's
    float norm_plus = 0;          ///< added to the weights of norms
};

/// The config and the tensors of a Hugging Face folder. Refuses, by name, fields that make no sense.
/// Source of the names: the configurations and models of transformers 4.46 and 5.
class hf_header {
public:
    /// `folder` must outlive it. The config of a model that takes more than text has the text model's in text_config.
    explicit hf_header(hf_directory const& folder);

    hf_directory const& folder() const noexcept { return folder_; }
    json_config const& config() const noexcept { return config_; }

    // Of a field of the config. A size is at least 1.
    std::int64_t size(std::string_view field) const;
    std::int64_t size_or(std::string_view field, std::int64_t fallback) const;
    float positive(std::string_view field) const;
    [[noreturn]] void fail(std::string_view field, std::string const& what, errc code = errc::bad_file) const;

    float positive_or(std::string_view field, float fallback) const;
    /// 0 where it is absent.
    float not_negative(std::string_view field) const;
    /// Refuses a field that would change what is computed, unless it has this value.
    void neutral(std::string_view field, bool value) const;

    /// How a rotation of heads of `head_dim` is described by rope_parameters, or by rope_theta and rope_scaling. Where
    /// rope_parameters has an entry for each kind of layer, `kind` is the one to read.
    rope_spec rope(family_layout const& how, std::int64_t head_dim, std::string_view kind = "full_attention") const;

    /// Which of `layers` layers have a window, as layer_types says, or else as the caller knows.
    std::vector<bool> windowed(std::size_t layers, std::function<bool(std::size_t)> const& otherwise) const;
    /// The same, otherwise of all but the last of each `interval`.
    std::vector<bool> windowed(std::size_t layers, std::int64_t interval) const;
    /// Gives every layer the window of sliding_window, where it is there.
    void set_windows(described_model& model) const;
    /// Gives the layers that layer_types or else `otherwise` names the window of sliding_window.
    void set_windows(described_model& model, std::function<bool(std::size_t)> const& otherwise) const;
    /// The same, otherwise of all layers but the last of each `interval`.
    void set_windows(described_model& model, std::int64_t interval) const;
    /// The same of configs that switch windows on with use_sliding_window, from max_window_layers on.
    void set_switched_windows(described_model& model) const;

    /// The model as far as config, `how` and `names` say. Fields read: those of `names`, tie_word_embeddings, and those
    /// of rope(); of mixtures num_local_experts, num_experts or n_routed_experts, num_experts_per_tok,
    /// n_shared_experts, norm_topk_prob, routed_scaling_factor, n_group, topk_group, first_k_dense_replace,
    /// mlp_only_layers, decoder_sparse_step, num_nextn_predict_layers. Windows are left to the family. Layers that
    /// guess tokens ahead are left out, and their tensors count as read.
    described_model describe(family_layout const& how, hf_names const& names = {}) const;

private:
    class namer;

    bool has(std::string const& tensor) const noexcept { return folder_.find_tensor(tensor) != nullptr; }
    activation_kind activation(family_layout const& how, hf_names const& names) const;
    attention_spec attention(std::int64_t width, family_layout const& how, hf_names const& names) const;
    experts_spec experts(family_layout const& how, hf_names const& names) const;
    std::string_view experts_field() const;
    std::vector<bool> sparse(std::size_t layers) const;
    void leave_out_layers_ahead(described_model& model, hf_names const& names) const;
    void name_output(described_model& model, hf_names const& names) const;

    hf_directory const& folder_;
    json_config config_; ///< of the folder, or the part of it that describes the text model
};

} // namespace plait
