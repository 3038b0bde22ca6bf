#pragma once

#include <plait/model/families/family.hpp>
#include <plait/model/families/gguf_header.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

/// What the Hugging Face folders of a family have in common, as far as their config does not say it.
struct hf_layout {
    presence qkv_bias = presence::absent;
    presence output_bias = presence::absent;
    presence ffn_bias = presence::absent;
    presence head_norms = presence::absent; ///< q_norm, k_norm of each head
    bool window = false;                    ///< sliding_window, where it is there, is that of every layer
};

/// The config and the tensors of a Hugging Face folder. Refuses, by name, fields that make no sense.
/// Source of the names: the configurations and models of transformers 4.46 and 5.
class hf_header {
public:
    /// `folder` must outlive it.
    explicit hf_header(hf_directory const& folder);

    hf_directory const& folder() const noexcept { return folder_; }
    json_config const& config() const noexcept { return folder_.config(); }

    // Of a field of the config. A size is at least 1.
    std::int64_t size(std::string_view field) const;
    std::int64_t size_or(std::string_view field, std::int64_t fallback) const;
    float positive(std::string_view field) const;
    [[noreturn]] void fail(std::string_view field, std::string const& what, errc code = errc::bad_file) const;

    /// How a rotation of heads of `head_dim` is described by rope_parameters, or by rope_theta and rope_scaling.
    rope_spec rope(rope_style style, std::int64_t head_dim) const;

    /// The model as far as config and `how` say, for the decoders that follow LLaMA's: RMSNorm before each sublayer,
    /// rotated halves, a gated network. Fields read: hidden_size, intermediate_size, num_hidden_layers,
    /// num_attention_heads, num_key_value_heads, head_dim, max_position_embeddings, vocab_size, rms_norm_eps,
    /// hidden_act, sliding_window, tie_word_embeddings, and those of rope().
    described_model describe(hf_layout const& how) const;

private:
    bool has(std::string const& tensor) const noexcept { return folder_.find_tensor(tensor) != nullptr; }
    bool there(presence which, std::string const& first) const;
    attention_spec attention(std::int64_t width, hf_layout const& how) const;
    void name_layer(hf_layout const& how, std::size_t i, layer_spec& layer, layer_tensors& at) const;
    void name_output(described_model& model) const;

    hf_directory const& folder_;
};

} // namespace plait
