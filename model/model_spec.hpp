#pragma once

#include <plait/actors/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

enum class norm_kind : std::uint8_t {
    none, ///< the identity
    rms,  ///< x / sqrt(mean(x^2) + epsilon) * weight
};

struct norm_spec {
    norm_kind kind = norm_kind::rms;
    float epsilon = 1e-5f;

    bool operator==(norm_spec const&) const = default;
};

/// Where a layer normalises. f is a sublayer (attention or feed-forward), N its norm.
enum class norm_placement : std::uint8_t {
    pre,      ///< x + f(N(x)): GPT-2, LLaMA
    post_add, ///< N(x + f(x)): the original transformer, GPT-1
};

/// Which elements of a head RoPE rotates together.
enum class rope_style : std::uint8_t {
    none,   ///< no rotation
    pairs,  ///< elements 2i and 2i+1 (ggml's NORM)
    halves, ///< elements i and i + dims/2 (ggml's NEOX)
};

/// Rotary position encoding. Pair i of position p turns by p / linear_scale * base^(-2i/dims) / factors[i].
/// Source: Su et al., RoFormer (2021); the factors are those of LLaMA 3.1's long contexts.
struct rope_spec {
    rope_style style = rope_style::none;
    std::int64_t dims = 0; ///< elements of a head that are rotated, from its start; even, at most head_dim
    float base = 10000.0f;
    float linear_scale = 1.0f;
    std::vector<float> factors; ///< dims / 2 divisors, or empty where all are 1

    bool operator==(rope_spec const&) const = default;
};

struct attention_spec {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0; ///< divides heads; head h reads KV head h / (heads / kv_heads)
    std::int64_t head_dim = 0;
    float scale = 0;         ///< of a score before the softmax, normally 1 / sqrt(head_dim)
    std::int64_t window = 0; ///< position p sees the positions above p - window; 0: all up to p
    float soft_cap = 0;      ///< c > 0: a score s becomes c * tanh(s / c); 0: no cap
    rope_spec rope;

    std::int64_t query_width() const noexcept { return heads * head_dim; }
    std::int64_t kv_width() const noexcept { return kv_heads * head_dim; }
    bool operator==(attention_spec const&) const = default;
};

enum class activation_kind : std::uint8_t {
    silu,      ///< x / (1 + exp(-x))
    gelu_tanh, ///< the tanh approximation of x * Phi(x)
};

struct ffn_spec {
    std::int64_t hidden = 0;
    activation_kind activation = activation_kind::silu;
    bool gated = true; ///< down(act(gate(x)) * up(x)), otherwise down(act(up(x)))

    bool operator==(ffn_spec const&) const = default;
};

struct layer_spec {
    norm_spec norm; ///< of both sublayers
    norm_placement placement = norm_placement::pre;
    attention_spec attention;
    ffn_spec ffn;

    bool operator==(layer_spec const&) const = default;
};

/// A model as data: what a decoder must compute, whatever file it came from. Plain and copyable. The layers may differ.
struct model_spec {
    std::string architecture; ///< the family, as the file names it
    std::string name;         ///< for people; may be empty
    std::int64_t width = 0;   ///< of the residual stream
    std::int64_t vocabulary = 0;
    std::int64_t context = 0;     ///< positions that the model was made for
    float embedding_scale = 1.0f; ///< multiplies a token's embedding
    std::vector<layer_spec> layers;
    norm_spec final_norm;
    bool tied_output = false;      ///< the token embedding is the output matrix too
    std::uint64_t fingerprint = 0; ///< differs between models (gguf_file::fingerprint)

    bool operator==(model_spec const&) const = default;
};

std::string_view name(norm_kind kind) noexcept;
std::string_view name(norm_placement placement) noexcept;
std::string_view name(rope_style style) noexcept;
std::string_view name(activation_kind kind) noexcept;

/// The specification in a few lines for people. Consecutive equal layers share a line.
std::string to_string(model_spec const& spec);

/// Throws `code`, naming the layer and the field after `where`, if a decoder could not run `spec`: no layers, sizes
/// below 1, KV heads that do not divide the heads, an odd or too wide rotation, values that are not finite.
void check(model_spec const& spec, errc code = errc::invalid_argument, std::string_view where = "model");

/// Where one layer's weights are: names of tensors in the file.
struct layer_tensors {
    std::string attention_norm;
    std::string query;
    std::string key;
    std::string value;
    std::string attention_output;
    std::string ffn_norm;
    std::string gate; ///< empty where the feed-forward network is not gated
    std::string up;
    std::string down;
};

/// Where a model's weights are: names of tensors in the file. An empty name means that the model has no such tensor.
struct tensor_map {
    std::string token_embedding;
    std::string output; ///< empty where the output is tied to the token embedding
    std::string output_norm;
    std::string rope_factors; ///< already read into the layers' rope_spec
    std::vector<layer_tensors> layers;
};

} // namespace plait
