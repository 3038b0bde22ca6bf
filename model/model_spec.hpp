#pragma once

#include <plait/actors/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

enum class norm_kind : std::uint8_t {
    none,  ///< the identity
    rms,   ///< x / sqrt(mean(x^2) + epsilon) * weight (Zhang and Sennrich, arXiv:1910.07467)
    layer, ///< (x - mean(x)) / sqrt(var(x) + epsilon) * weight + bias (Ba et al., arXiv:1607.06450)
};

struct norm_spec {
    norm_kind kind = norm_kind::rms;
    float epsilon = 1e-5f;
    bool bias = false; ///< of `layer`

    bool operator==(norm_spec const&) const = default;
};

/// Where a layer normalises. f is a sublayer (attention or feed-forward), N its norm, M a second one.
enum class norm_placement : std::uint8_t {
    pre,      ///< x + f(N(x)): GPT-2, LLaMA
    post_add, ///< N(x + f(x)): the original transformer, GPT-1
    sandwich, ///< x + M(f(N(x))): Gemma 2, GLM-4-0414
    output,   ///< x + M(f(x)): OLMo 2
    input,    ///< a * N(x) + f(N(x)), a = layer_spec::residual_scale: ChatGLM-6B, after DeepNorm (arXiv:2203.00555)
};

/// Which elements of a head RoPE rotates together.
enum class rope_style : std::uint8_t {
    none,       ///< no rotation
    pairs,      ///< elements 2i and 2i+1 (ggml's NORM)
    halves,     ///< elements i and i + dims/2 (ggml's NEOX)
    two_halves, ///< `halves` in each half of the head: by the position up to the prompt's end, and by that after it
};

/// Rotary position encoding. Pair i of position p turns by p / linear_scale * base^(-2i/dims) / factors[i].
/// Source: Su et al., RoFormer (arXiv:2104.09864); the factors are those of LLaMA 3.1's long contexts, of YaRN
/// (arXiv:2309.00071) or of LongRoPE (arXiv:2402.13753), which has two sets of them.
struct rope_spec {
    rope_style style = rope_style::none;
    std::int64_t dims = 0; ///< elements of a head that are rotated, from its start; even, at most head_dim
    float base = 10000.0f;
    float linear_scale = 1.0f;
    std::vector<float> factors;      ///< dims / 2 divisors, or empty where all are 1
    std::vector<float> long_factors; ///< instead of `factors` for sequences longer than short_context; or empty
    std::int64_t short_context = 0;  ///< of a model with long_factors
    float magnitude = 1.0f;          ///< multiplies what is rotated

    bool operator==(rope_spec const&) const = default;
};

/// Over what queries and keys are normalised, before their rotation.
enum class head_norm : std::uint8_t {
    none,
    head,      ///< each head by itself, all with the same weights: Qwen3
    each_head, ///< each head by itself, each with its own weights: Command-R+
    all_heads, ///< all heads together: OLMo 2
};

struct attention_spec {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0; ///< divides heads; head h reads KV head h / (heads / kv_heads)
    std::int64_t head_dim = 0;
    float scale = 0;         ///< of a score before the softmax, normally 1 / sqrt(head_dim)
    std::int64_t window = 0; ///< position p sees the positions above p - window; 0: all up to p
    float soft_cap = 0;      ///< c > 0: a score s becomes c * tanh(s / c); 0: no cap
    rope_spec rope;
    head_norm query_key_norm = head_norm::none;
    norm_spec norm{.kind = norm_kind::rms, .epsilon = 1e-6f}; ///< the kind of query_key_norm
    bool query_key_value_bias = false;
    bool output_bias = false;
    bool sinks = false; ///< each head has a score that takes part in the softmax without a value: gpt-oss

    std::int64_t query_width() const noexcept { return heads * head_dim; }
    std::int64_t kv_width() const noexcept { return kv_heads * head_dim; }
    bool operator==(attention_spec const&) const = default;
};

enum class activation_kind : std::uint8_t {
    silu,           ///< x / (1 + exp(-x))
    gelu_tanh,      ///< the tanh approximation of x * Phi(x)
    gelu_erf,       ///< x * Phi(x)
    relu,           ///< max(x, 0)
    relu_squared,   ///< max(x, 0)^2
    swiglu_clamped, ///< of a gate g and u: g' / (1 + exp(-alpha g')) * (u' + 1), g' and u' clamped: gpt-oss
};

/// How a router turns its scores into the weights of the experts that it chooses.
enum class routing : std::uint8_t {
    softmax,           ///< over all; the greatest are chosen
    softmax_of_chosen, ///< the greatest scores are chosen, the softmax is over them
    sigmoid,           ///< of each; the greatest are chosen, with a bias that takes no part in the weight
};

/// A mixture of experts: each token goes through the few that a router chooses for it.
struct experts_spec {
    std::int64_t count = 0; ///< 0: no mixture
    std::int64_t used = 0;  ///< experts of a token
    std::int64_t hidden = 0;
    routing scoring = routing::softmax;
    bool normalised = false; ///< the weights of the chosen are divided by their sum
    float scale = 1.0f;      ///< of the weights, at the end
    std::int64_t groups = 1; ///< of experts; the best groups_used of them are chosen from: DeepSeek-V3
    std::int64_t groups_used = 1;
    bool router_bias = false;       ///< added to the scores
    bool selection_bias = false;    ///< added for the choice alone
    bool bias = false;              ///< of the experts' products
    std::int64_t shared_hidden = 0; ///< of an expert that every token goes through; 0: none

    bool operator==(experts_spec const&) const = default;
};

struct ffn_spec {
    std::int64_t hidden = 0; ///< of the dense network; 0 where there are experts
    activation_kind activation = activation_kind::silu;
    float alpha = 1.702f; ///< of swiglu_clamped
    float limit = 7.0f;   ///< of swiglu_clamped
    bool gated = true;    ///< down(act(gate(x)) * up(x)), otherwise down(act(up(x)))
    bool bias = false;    ///< of its products
    experts_spec experts;

    bool operator==(ffn_spec const&) const = default;
};

struct layer_spec {
    norm_spec norm; ///< of both sublayers
    norm_placement placement = norm_placement::pre;
    bool parallel = false;       ///< x + attention(N(x)) + ffn(N'(x)), with placement `pre`
    bool shared_norm = false;    ///< of a parallel layer: N' is N
    float residual_scale = 1.0f; ///< multiplies what a sublayer's output is added to
    float output_scale = 1.0f;   ///< multiplies a sublayer's output: Granite
    attention_spec attention;
    ffn_spec ffn;

    /// What a sublayer makes is normed before it is added to the stream.
    bool norms_output() const noexcept
    {
        return placement == norm_placement::sandwich || placement == norm_placement::output;
    }

    bool operator==(layer_spec const&) const = default;
};

/// A model as data: what a decoder must compute, whatever file it came from. Plain and copyable. The layers may differ.
struct model_spec {
    std::string architecture; ///< the family, as the file names it
    std::string name;         ///< for people; may be empty
    std::int64_t width = 0;   ///< of the residual stream
    std::int64_t vocabulary = 0;
    std::int64_t context = 0;           ///< positions that the model was made for
    std::int64_t learned_positions = 0; ///< embeddings of positions, added to the tokens'; 0: none
    bool prefix = false;          ///< a prompt's tokens but the last see each other whatever their order: ChatGLM-6B
    float embedding_scale = 1.0f; ///< multiplies a token's embedding
    std::vector<layer_spec> layers;
    norm_spec final_norm;
    float logit_scale = 1.0f;      ///< multiplies the logits
    float logit_cap = 0;           ///< c > 0: a logit x becomes c * tanh(x / c), after logit_scale; 0: no cap
    bool tied_output = false;      ///< the token embedding is the output matrix too
    std::uint64_t fingerprint = 0; ///< differs between models (tensor_source::fingerprint)

    bool operator==(model_spec const&) const = default;
};

std::string_view name(norm_kind kind) noexcept;
std::string_view name(norm_placement placement) noexcept;
std::string_view name(rope_style style) noexcept;
std::string_view name(activation_kind kind) noexcept;
std::string_view name(head_norm kind) noexcept;
std::string_view name(routing kind) noexcept;

/// The specification in a few lines for people. Consecutive equal layers share a line.
std::string to_string(model_spec const& spec);

/// Throws `code`, naming the layer and the field after `where`, if a decoder could not run `spec`: no layers, sizes
/// below 1, KV heads that do not divide the heads, an odd or too wide rotation, values that are not finite.
void check(model_spec const& spec, errc code = errc::invalid_argument, std::string_view where = "model");

} // namespace plait
