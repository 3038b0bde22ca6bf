#pragma once

#include <plait/model/families/family.hpp>

#include <array>
#include <string_view>

namespace plait {

/// Reads the header of a file of the architecture `llama`: LLaMA 1 to 3, and the models converted as such (Mistral,
/// SmolLM and others). RMSNorm before each sublayer, RoPE on pairs (converted weights are permuted for it), grouped
/// heads, SwiGLU, no biases; the number of heads, KV heads and hidden units may differ from layer to layer.
/// Reads llama.{block_count, context_length, embedding_length, feed_forward_length, vocab_size, embedding_scale},
/// llama.attention.{head_count, head_count_kv, key_length, value_length, layer_norm_rms_epsilon, scale,
/// sliding_window}, llama.attn_logit_softcapping, llama.rope.{dimension_count, freq_base, scale_linear, scaling.type,
/// scaling.factor}. Errors: as `describe`; keys that change the computation in a way that this family does not have are
/// refused.
described_model describe_llama(gguf_file const& file);

/// Reads the Hugging Face folder of such a model, where the weights are not permuted: RoPE is on halves. A Mistral
/// without a window is the same model. Errors: as `describe`.
described_model describe_llama_hf(hf_directory const& folder);
inline constexpr std::array<std::string_view, 2> llama_hf_architectures{"LlamaForCausalLM", "MistralForCausalLM"};

} // namespace plait
