#include <plait/model/families/hf_header.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/rope_scaling.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plait {
namespace {

// As in a GGUF header: positions are exact in F32, and products of two dimensions in 64 bits.
constexpr std::int64_t max_context = std::int64_t{1} << 24;
constexpr std::int64_t max_dimension = std::int64_t{1} << 30;

[[noreturn]] void refuse(json_config const& in, std::string_view field, std::string const& what,
                         errc code = errc::bad_file)
{
    throw error(code, in.where(field) + ": " + what);
}

std::int64_t size_of(json_config const& in, std::string_view field, std::int64_t largest = max_dimension)
{
    std::int64_t const value = in.integer(field);
    if (value < 1 || value > largest)
        refuse(in, field, std::to_string(value) + " is not between 1 and " + std::to_string(largest));
    return value;
}

double positive_of(json_config const& in, std::string_view field)
{
    double const value = in.number(field);
    if (!std::isfinite(value) || value <= 0)
        refuse(in, field, std::to_string(value) + " is not a positive finite number");
    return value;
}

double positive_of(json_config const& in, std::string_view field, double fallback)
{
    return in.has(field) ? positive_of(in, field) : fallback;
}

/// Sets what `scaling` says; it may name its type in either of two fields.
void scale(rope_spec& rope, json_config const& scaling, std::int64_t context)
{
    std::string_view const field = scaling.has("rope_type") ? "rope_type" : "type";
    std::string const type = scaling.string(field, "default");
    if (type == "default") return;
    if (type == "linear") {
        rope.linear_scale = static_cast<float>(positive_of(scaling, "factor"));
    } else if (type == "llama3") {
        llama3_scaling how;
        how.factor = positive_of(scaling, "factor");
        how.low_frequency_factor = positive_of(scaling, "low_freq_factor");
        how.high_frequency_factor = positive_of(scaling, "high_freq_factor");
        how.original_context = size_of(scaling, "original_max_position_embeddings", max_context);
        if (how.high_frequency_factor <= how.low_frequency_factor)
            refuse(scaling, "high_freq_factor", "is not above low_freq_factor");
        rope.factors = llama3_factors(rope.dims, rope.base, how);
    } else if (type == "yarn") {
        yarn_scaling how;
        how.factor = positive_of(scaling, "factor");
        how.original_context = scaling.has("original_max_position_embeddings")
                                   ? size_of(scaling, "original_max_position_embeddings", max_context)
                                   : context;
        how.beta_fast = positive_of(scaling, "beta_fast", 32);
        how.beta_slow = positive_of(scaling, "beta_slow", 1);
        how.truncate = scaling.boolean("truncate", true);
        rope.factors = yarn_factors(rope.dims, rope.base, how);
        double magnitude = yarn_magnitude(how.factor);
        if (scaling.has("mscale") && scaling.has("mscale_all_dim"))
            magnitude = yarn_magnitude(how.factor, positive_of(scaling, "mscale")) /
                        yarn_magnitude(how.factor, positive_of(scaling, "mscale_all_dim"));
        rope.magnitude = static_cast<float>(positive_of(scaling, "attention_factor", magnitude));
    } else {
        refuse(scaling, field, quote(type) + " scaling is not computed; default, linear, llama3 and yarn are",
               errc::unsupported);
    }
}

} // namespace

hf_header::hf_header(hf_directory const& folder)
    : folder_(folder)
{
}

void hf_header::fail(std::string_view field, std::string const& what, errc code) const
{
    refuse(config(), field, what, code);
}

std::int64_t hf_header::size(std::string_view field) const
{
    return size_of(config(), field);
}

std::int64_t hf_header::size_or(std::string_view field, std::int64_t fallback) const
{
    return config().has(field) ? size(field) : fallback;
}

float hf_header::positive(std::string_view field) const
{
    return static_cast<float>(positive_of(config(), field));
}

bool hf_header::there(presence which, std::string const& first) const
{
    return which == presence::required || (which == presence::optional && has(first));
}

rope_spec hf_header::rope(rope_style style, std::int64_t head_dim) const
{
    auto const all = config();
    auto const parameters = all.find_object("rope_parameters");
    json_config const& base = parameters && parameters->has("rope_theta") ? *parameters : all;
    json_config const& partial = parameters && parameters->has("partial_rotary_factor") ? *parameters : all;
    rope_spec rope;
    rope.style = style;
    rope.base = static_cast<float>(positive_of(base, "rope_theta", 10000));
    if (rope.base <= 1) refuse(base, "rope_theta", std::to_string(rope.base) + " is not above 1");
    double const part = positive_of(partial, "partial_rotary_factor", 1);
    rope.dims = static_cast<std::int64_t>(static_cast<double>(head_dim) * std::min(part, 2.0));
    if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_dim)
        refuse(partial, "partial_rotary_factor",
               std::to_string(rope.dims) + " is not an even number up to the head's " + std::to_string(head_dim));
    auto const context = size_of(all, "max_position_embeddings", max_context);
    if (parameters)
        scale(rope, *parameters, context);
    else if (auto const scaling = all.find_object("rope_scaling"))
        scale(rope, *scaling, context);
    return rope;
}

attention_spec hf_header::attention(std::int64_t width, hf_layout const& how) const
{
    attention_spec attention;
    attention.heads = size("num_attention_heads");
    attention.kv_heads = size_or("num_key_value_heads", attention.heads);
    auto const heads = std::to_string(attention.heads) + " heads";
    if (attention.kv_heads > attention.heads || attention.heads % attention.kv_heads != 0)
        fail("num_key_value_heads", std::to_string(attention.kv_heads) + " KV heads do not divide the " + heads);
    if (!config().has("head_dim") && width % attention.heads != 0)
        fail("num_attention_heads", heads + " do not divide the width " + std::to_string(width));
    attention.head_dim = size_or("head_dim", width / attention.heads);
    if (attention.query_width() > max_dimension)
        fail("head_dim", heads + " of " + std::to_string(attention.head_dim) + " are too wide");
    attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.head_dim));
    if (how.window) attention.window = size_or("sliding_window", 0);
    attention.rope = rope(rope_style::halves, attention.head_dim);
    return attention;
}

void hf_header::name_layer(hf_layout const& how, std::size_t i, layer_spec& layer, layer_tensors& at) const
{
    std::string const layers = "model.layers.";
    auto const first = [&](char const* of) { return layers + "0." + of; };
    auto const name = [&](std::string const& of) { return tensor_ref(layers + std::to_string(i) + "." + of); };
    auto const weight = [&](std::string const& of) { return name(of + ".weight"); };
    auto const bias = [&](std::string const& of) { return name(of + ".bias"); };
    at.attention_norm.weight = weight("input_layernorm");
    at.ffn_norm.weight = weight("post_attention_layernorm");

    auto& a = layer.attention;
    at.query = weight("self_attn.q_proj");
    at.key = weight("self_attn.k_proj");
    at.value = weight("self_attn.v_proj");
    at.attention_output = weight("self_attn.o_proj");
    a.query_key_value_bias = there(how.qkv_bias, first("self_attn.q_proj.bias"));
    if (a.query_key_value_bias) {
        at.query_bias = bias("self_attn.q_proj");
        at.key_bias = bias("self_attn.k_proj");
        at.value_bias = bias("self_attn.v_proj");
    }
    a.output_bias = there(how.output_bias, first("self_attn.o_proj.bias"));
    if (a.output_bias) at.attention_output_bias = bias("self_attn.o_proj");
    if (there(how.head_norms, first("self_attn.q_norm.weight"))) {
        a.query_key_norm = head_norm::head;
        a.norm = layer.norm;
        at.query_norm.weight = weight("self_attn.q_norm");
        at.key_norm.weight = weight("self_attn.k_norm");
    }

    at.ffn.gate = weight("mlp.gate_proj");
    at.ffn.up = weight("mlp.up_proj");
    at.ffn.down = weight("mlp.down_proj");
    layer.ffn.bias = there(how.ffn_bias, first("mlp.up_proj.bias"));
    if (layer.ffn.bias) {
        at.ffn.gate_bias = bias("mlp.gate_proj");
        at.ffn.up_bias = bias("mlp.up_proj");
        at.ffn.down_bias = bias("mlp.down_proj");
    }
}

/// A config that ties the output means it, also where a file has a copy of the embedding for it.
void hf_header::name_output(described_model& model) const
{
    std::string const output = "lm_head.weight";
    model.spec.tied_output = config().boolean("tie_word_embeddings", !has(output));
    if (!model.spec.tied_output)
        model.tensors.output = output;
    else if (has(output))
        model.tensors.read.push_back(output);
    // Old checkpoints keep the frequencies that follow from the config.
    for (auto const& tensor : folder_.tensors())
        if (tensor.name.ends_with(".rotary_emb.inv_freq")) model.tensors.read.emplace_back(tensor.name);
}

described_model hf_header::describe(hf_layout const& how) const
{
    std::string const activation = config().string("hidden_act", "silu");
    if (activation != "silu")
        fail("hidden_act", quote(activation) + " is not computed for this architecture; silu is", errc::unsupported);

    described_model model;
    model_spec& spec = model.spec;
    spec.architecture = config().string("model_type");
    spec.name = folder_.folder().filename().string();
    spec.context = size_of(config(), "max_position_embeddings", max_context);
    spec.width = size("hidden_size");
    spec.vocabulary = size("vocab_size");
    spec.final_norm = {.kind = norm_kind::rms, .epsilon = positive("rms_norm_eps")};
    if (spec.final_norm.epsilon >= 1) fail("rms_norm_eps", std::to_string(spec.final_norm.epsilon) + " is not below 1");

    // Every layer needs tensors, so a folder cannot have more layers than tensors: nothing is reserved for a lie.
    auto const layers = static_cast<std::size_t>(size("num_hidden_layers"));
    if (layers > folder_.tensors().size())
        fail("num_hidden_layers", std::to_string(layers) + " layers, but the files have only " +
                                      std::to_string(folder_.tensors().size()) + " tensors");
    layer_spec layer;
    layer.norm = spec.final_norm;
    layer.attention = attention(spec.width, how);
    layer.ffn = {.hidden = size("intermediate_size"), .activation = activation_kind::silu, .gated = true};
    for (std::size_t i = 0; i < layers; ++i) {
        layer_tensors names;
        name_layer(how, i, layer, names);
        spec.layers.push_back(layer);
        model.tensors.layers.push_back(std::move(names));
    }
    model.tensors.token_embedding = "model.embed_tokens.weight";
    model.tensors.output_norm.weight = "model.norm.weight";
    name_output(model);
    return model;
}

} // namespace plait
