#include <plait/model/families/llama.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace plait {
namespace {

// A position is kept exactly by F32, in which RoPE multiplies it, up to this many.
constexpr std::uint32_t max_context = 1u << 24;
// No dimension of a published model comes near; below it every product of two dimensions is exact in 64 bits.
constexpr std::uint32_t max_dimension = 1u << 30;

/// Reads the keys of one file and refuses, by name, those that make no sense.
class header {
public:
    explicit header(gguf_file const& file)
        : file_(file)
    {
    }

    [[noreturn]] void fail(std::string_view key, std::string const& what, errc code = errc::bad_file) const
    {
        throw error(code, file_.source() + ": key '" + std::string(key) + "': " + what);
    }

    std::int64_t size(std::string_view key, std::uint32_t largest = max_dimension) const
    {
        return checked(key, file_.u32(key), largest);
    }

    std::int64_t size_or(std::string_view key, std::int64_t fallback) const
    {
        return file_.has(key) ? size(key) : fallback;
    }

    /// One value for all layers, or an array with one for each.
    std::vector<std::int64_t> sizes(std::string_view key, std::size_t layers) const
    {
        gguf_entry const* entry = file_.find_entry(key);
        if (entry == nullptr || entry->type != gguf_type::array) return std::vector<std::int64_t>(layers, size(key));
        std::vector<std::int32_t> const values = file_.i32s(key);
        if (values.size() != layers)
            fail(key, std::to_string(values.size()) + " values for " + std::to_string(layers) + " layers");
        std::vector<std::int64_t> sizes;
        sizes.reserve(layers);
        for (std::int32_t const value : values)
            sizes.push_back(checked(key, value, max_dimension));
        return sizes;
    }

    float positive(std::string_view key) const { return checked_positive(key, file_.f32(key)); }

    float positive_or(std::string_view key, float fallback) const
    {
        return checked_positive(key, file_.f32(key, fallback));
    }

    /// Refuses a key that would change what is computed, unless its value means "not used".
    void neutral(std::string_view key, std::initializer_list<float> values) const
    {
        if (!file_.has(key)) return;
        float const value = file_.f32(key);
        if (std::ranges::find(values, value) == values.end())
            fail(key, std::to_string(value) + " changes the computation", errc::unsupported);
    }

    void neutral(std::string_view key, bool value) const
    {
        if (file_.boolean(key, value) != value) fail(key, "changes the computation", errc::unsupported);
    }

private:
    std::int64_t checked(std::string_view key, std::int64_t value, std::uint32_t largest) const
    {
        if (value < 1 || value > largest)
            fail(key, std::to_string(value) + " is not between 1 and " + std::to_string(largest));
        return value;
    }

    float checked_positive(std::string_view key, float value) const
    {
        if (!std::isfinite(value) || value <= 0) fail(key, std::to_string(value) + " is not a positive finite number");
        return value;
    }

    gguf_file const& file_;
};

std::int64_t read_vocabulary(gguf_file const& file, header const& keys)
{
    std::int64_t const rows = file.tensor("token_embd.weight").dims[1];
    auto const agree = [&](std::string_view key, std::uint64_t stated) {
        if (stated != static_cast<std::uint64_t>(rows))
            keys.fail(key, std::to_string(stated) + " tokens, but 'token_embd.weight' has " + std::to_string(rows) +
                               " rows");
    };
    if (file.has("llama.vocab_size")) agree("llama.vocab_size", file.u32("llama.vocab_size"));
    gguf_entry const* tokens = file.find_entry("tokenizer.ggml.tokens");
    if (tokens != nullptr && tokens->type == gguf_type::array) agree(tokens->key, tokens->count);
    return rows;
}

float read_linear_scale(gguf_file const& file, header const& keys)
{
    std::string_view const type = file.string("llama.rope.scaling.type", "linear");
    if (type == "none") return 1.0f;
    if (type != "linear")
        keys.fail("llama.rope.scaling.type", quote(type) + " scaling is not computed; none and linear are",
                  errc::unsupported);
    for (std::string_view const key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
        if (!file.has(key)) continue;
        // Writers put 0 where there is no scaling.
        return file.f32(key) == 0.0f ? 1.0f : keys.positive(key);
    }
    return 1.0f;
}

/// The factors of `rope_freqs.weight`, empty where the file has none.
std::vector<float> read_rope_factors(gguf_file const& file, std::int64_t dims)
{
    stored_tensor const* tensor = file.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return {};
    auto const fail = [&](errc code, std::string const& what) {
        throw error(code, file.source() + ": tensor 'rope_freqs.weight': " + what);
    };
    if (tensor->type != ggml_type::f32)
        fail(errc::unsupported, "expected F32 values, found " + std::string(layout(tensor->type).name));
    if (tensor->cols() != dims / 2 || tensor->rows() != 1)
        fail(errc::bad_file, "expected the shape [" + std::to_string(dims / 2) + "], found " + shape(*tensor));
    std::vector<float> factors(static_cast<std::size_t>(dims / 2));
    file.read(*tensor, 0, std::as_writable_bytes(std::span(factors)));
    for (float const factor : factors)
        if (!std::isfinite(factor) || factor <= 0)
            fail(errc::bad_file, "the factor " + std::to_string(factor) + " is not a positive finite number");
    return factors;
}

void refuse_other_computations(gguf_file const& file, header const& keys)
{
    if (file.u32("llama.expert_count", 0) != 0)
        keys.fail("llama.expert_count", "mixtures of experts are not computed", errc::unsupported);
    keys.neutral("llama.attention.causal", true);
    keys.neutral("llama.use_parallel_residual", false);
    keys.neutral("llama.attention.clamp_kqv", {0.0f});
    keys.neutral("llama.attention.max_alibi_bias", {0.0f});
    keys.neutral("llama.final_logit_softcapping", {0.0f});
    keys.neutral("llama.residual_scale", {0.0f, 1.0f});
    keys.neutral("llama.logit_scale", {0.0f, 1.0f});
}

attention_spec read_attention(header const& keys, std::int64_t width, std::int64_t heads, std::int64_t kv_heads)
{
    attention_spec attention;
    attention.heads = heads;
    attention.kv_heads = kv_heads;
    std::string_view const heads_key = "llama.attention.head_count";
    std::string_view const kv_key = "llama.attention.head_count_kv";
    if (kv_heads > heads)
        keys.fail(kv_key, std::to_string(kv_heads) + " KV heads are more than the " + std::to_string(heads) + " heads");
    if (heads % kv_heads != 0)
        keys.fail(kv_key, std::to_string(kv_heads) + " KV heads do not divide the " + std::to_string(heads) + " heads");
    attention.head_dim = keys.size_or("llama.attention.key_length", 0);
    if (attention.head_dim == 0) {
        if (width % heads != 0)
            keys.fail(heads_key, std::to_string(heads) + " heads do not divide the width " + std::to_string(width));
        attention.head_dim = width / heads;
    }
    if (attention.query_width() > max_dimension)
        keys.fail(heads_key, std::to_string(heads) + " heads of " + std::to_string(attention.head_dim) +
                                 " are wider than " + std::to_string(max_dimension));
    std::int64_t const value_dim = keys.size_or("llama.attention.value_length", attention.head_dim);
    if (value_dim != attention.head_dim)
        keys.fail("llama.attention.value_length",
                  std::to_string(value_dim) + " differs from the keys' " + std::to_string(attention.head_dim),
                  errc::unsupported);
    attention.scale =
        keys.positive_or("llama.attention.scale", 1.0f / std::sqrt(static_cast<float>(attention.head_dim)));
    return attention;
}

rope_spec read_rope(gguf_file const& file, header const& keys, std::int64_t head_dim)
{
    rope_spec rope;
    rope.style = rope_style::pairs;
    std::string_view const dims_key = "llama.rope.dimension_count";
    rope.dims = keys.size_or(dims_key, head_dim);
    if (rope.dims % 2 != 0 || rope.dims > head_dim)
        keys.fail(dims_key,
                  std::to_string(rope.dims) + " is not an even number up to the head's " + std::to_string(head_dim));
    rope.base = keys.positive_or("llama.rope.freq_base", 10000.0f);
    if (rope.base <= 1) keys.fail("llama.rope.freq_base", std::to_string(rope.base) + " is not above 1");
    rope.linear_scale = read_linear_scale(file, keys);
    rope.factors = read_rope_factors(file, rope.dims);
    return rope;
}

layer_tensors name_layer(std::size_t layer)
{
    std::string const prefix = "blk." + std::to_string(layer) + ".";
    return {
        .attention_norm = prefix + "attn_norm.weight",
        .query = prefix + "attn_q.weight",
        .key = prefix + "attn_k.weight",
        .value = prefix + "attn_v.weight",
        .attention_output = prefix + "attn_output.weight",
        .ffn_norm = prefix + "ffn_norm.weight",
        .gate = prefix + "ffn_gate.weight",
        .up = prefix + "ffn_up.weight",
        .down = prefix + "ffn_down.weight",
    };
}

} // namespace

described_model describe_llama(gguf_file const& file)
{
    header const keys(file);
    refuse_other_computations(file, keys);

    described_model model;
    model_spec& spec = model.spec;
    spec.architecture = "llama";
    spec.name = file.string("general.name", "");
    spec.context = keys.size("llama.context_length", max_context);
    spec.width = keys.size("llama.embedding_length");
    spec.vocabulary = read_vocabulary(file, keys);
    spec.embedding_scale = keys.positive_or("llama.embedding_scale", 1.0f);

    norm_spec norm{norm_kind::rms, keys.positive("llama.attention.layer_norm_rms_epsilon")};
    if (norm.epsilon >= 1)
        keys.fail("llama.attention.layer_norm_rms_epsilon", std::to_string(norm.epsilon) + " is not below 1");
    spec.final_norm = norm;

    // Every layer needs tensors, so a file cannot have more layers than tensors: nothing is reserved for a lie.
    std::string_view const layers_key = "llama.block_count";
    auto const layers = static_cast<std::size_t>(keys.size(layers_key));
    if (layers > file.tensors().size())
        keys.fail(layers_key, std::to_string(layers) + " layers, but the file has only " +
                                  std::to_string(file.tensors().size()) + " tensors");
    std::string_view const kv_key = "llama.attention.head_count_kv";
    std::vector<std::int64_t> const heads = keys.sizes("llama.attention.head_count", layers);
    std::vector<std::int64_t> const kv_heads = file.has(kv_key) ? keys.sizes(kv_key, layers) : heads;
    std::vector<std::int64_t> const hidden = keys.sizes("llama.feed_forward_length", layers);
    auto const window = static_cast<std::int64_t>(file.u32("llama.attention.sliding_window", 0));
    float const soft_cap = file.f32("llama.attn_logit_softcapping", 0.0f);
    if (!std::isfinite(soft_cap) || soft_cap < 0)
        keys.fail("llama.attn_logit_softcapping", std::to_string(soft_cap) + " is negative or not finite");

    for (std::size_t i = 0; i < layers; ++i) {
        layer_spec layer;
        layer.norm = norm;
        layer.placement = norm_placement::pre;
        layer.attention = read_attention(keys, spec.width, heads[i], kv_heads[i]);
        layer.attention.window = window;
        layer.attention.soft_cap = soft_cap;
        layer.attention.rope = read_rope(file, keys, layer.attention.head_dim);
        layer.ffn = {.hidden = hidden[i], .activation = activation_kind::silu, .gated = true};
        spec.layers.push_back(std::move(layer));
        model.tensors.layers.push_back(name_layer(i));
    }

    spec.tied_output = file.find_tensor("output.weight") == nullptr;
    model.tensors.token_embedding = "token_embd.weight";
    model.tensors.output = spec.tied_output ? "" : "output.weight";
    model.tensors.output_norm = "output_norm.weight";
    if (file.find_tensor("rope_freqs.weight") != nullptr) model.tensors.rope_factors = "rope_freqs.weight";
    return model;
}

} // namespace plait
