#pragma once

#include <plait/model/families/family.hpp>
#include <plait/model/families/family_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// What architectures call differently in their files.
struct gguf_names {
    std::string_view ffn_norm = "ffn_norm"; ///< without ".weight"
};

/// The keys and tensors of a GGUF file of one architecture. Refuses, by name, those that make no sense.
/// Source of the names: llama.cpp's gguf-py/gguf/constants.py.
class gguf_header {
public:
    /// `file` must outlive it.
    explicit gguf_header(gguf_file const& file);

    gguf_file const& file() const noexcept { return file_; }
    /// "llama.block_count" of "block_count".
    std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }
    bool has(std::string_view name) const { return file_.has(key(name)); }

    // Of the key called <architecture>.`name`. A size is at least 1.
    std::int64_t size(std::string_view name) const;
    std::int64_t size_or(std::string_view name, std::int64_t fallback) const;
    /// One value for all layers, or an array with one for each.
    std::vector<std::int64_t> sizes(std::string_view name, std::size_t layers) const;
    float positive(std::string_view name) const;
    float positive_or(std::string_view name, float fallback) const;
    /// 0 where it is absent.
    float not_negative(std::string_view name) const;
    bool boolean_or(std::string_view name, bool fallback) const { return file_.boolean(key(name), fallback); }
    /// Refuses a key that would change what is computed, unless its value means "not used".
    void neutral(std::string_view name, std::initializer_list<float> values) const;
    void neutral(std::string_view name, bool value) const;
    [[noreturn]] void fail(std::string_view name, std::string const& what, errc code = errc::bad_file) const;

    /// `name`, or nothing where the file has no such tensor.
    tensor_ref optional(std::string const& name) const;

    /// The model as far as keys and `how` say. Keys read: block_count, context_length, embedding_length,
    /// feed_forward_length, vocab_size, attention.{head_count, head_count_kv, key_length, value_length,
    /// layer_norm_epsilon, layer_norm_rms_epsilon, scale, sliding_window}, attn_logit_softcapping,
    /// final_logit_softcapping, embedding_scale, expert_{count, used_count, feed_forward_length, shared_count,
    /// shared_feed_forward_length, gating_func, weights_norm, weights_scale, group_count, group_used_count},
    /// leading_dense_block_count, nextn_predict_layers, rope.{dimension_count, freq_base, scale_linear, scaling.{type,
    /// factor, original_context_length, attn_factor, yarn_beta_fast, yarn_beta_slow}}; tensors: rope_freqs,
    /// rope_factors_short, rope_factors_long. Layers that guess tokens ahead are left out, and their tensors count as
    /// read.
    described_model describe(family_layout const& how, gguf_names const& names = {}) const;

private:
    std::int64_t checked(std::string_view name, std::int64_t value, std::int64_t largest) const;
    float checked_positive(std::string_view name, float value) const;
    std::int64_t vocabulary() const;
    bool there(presence which, std::string const& first) const;
    attention_spec attention(std::int64_t width, std::int64_t heads, std::int64_t kv_heads) const;
    rope_spec rope(family_layout const& how, std::int64_t head_dim, std::int64_t context) const;
    void scale_rope(rope_spec& rope, std::int64_t context) const;
    std::vector<float> factors(std::string const& tensor, std::int64_t dims) const;
    experts_spec experts(family_layout const& how, std::int64_t hidden) const;
    void name_layer(family_layout const& how, gguf_names const& names, std::size_t i, layer_spec& layer,
                    layer_tensors& at) const;
    void name_experts(family_layout const& how, std::size_t i, layer_spec& layer, layer_tensors& at) const;

    gguf_file const& file_;
    std::string architecture_;
};

} // namespace plait
