#include <plait/model/families/gguf_header.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/limits.hpp>
#include <plait/model/families/rope_scaling.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace plait {

gguf_header::gguf_header(gguf_file const& file)
    : file_(file)
    , architecture_(file.string("general.architecture"))
{
}

void gguf_header::fail(std::string_view name, std::string const& what, errc code) const
{
    throw error(code, file_.source() + ": key '" + key(name) + "': " + what);
}

std::int64_t gguf_header::checked(std::string_view name, std::int64_t value, std::int64_t largest) const
{
    if (value < 1 || value > largest)
        fail(name, std::to_string(value) + " is not between 1 and " + std::to_string(largest));
    return value;
}

float gguf_header::checked_positive(std::string_view name, float value) const
{
    if (!std::isfinite(value) || value <= 0) fail(name, std::to_string(value) + " is not a positive finite number");
    return value;
}

std::int64_t gguf_header::size(std::string_view name) const
{
    return checked(name, file_.u32(key(name)), max_dimension);
}

std::int64_t gguf_header::size_or(std::string_view name, std::int64_t fallback) const
{
    return has(name) ? size(name) : fallback;
}

std::vector<std::int64_t> gguf_header::sizes(std::string_view name, std::size_t layers) const
{
    gguf_entry const* entry = file_.find_entry(key(name));
    if (entry == nullptr || entry->type != gguf_type::array) return std::vector<std::int64_t>(layers, size(name));
    std::vector<std::int32_t> const values = file_.i32s(key(name));
    if (values.size() != layers)
        fail(name, std::to_string(values.size()) + " values for " + std::to_string(layers) + " layers");
    std::vector<std::int64_t> sizes;
    sizes.reserve(layers);
    for (std::int32_t const value : values)
        sizes.push_back(checked(name, value, max_dimension));
    return sizes;
}

float gguf_header::positive(std::string_view name) const
{
    return checked_positive(name, file_.f32(key(name)));
}

float gguf_header::positive_or(std::string_view name, float fallback) const
{
    return checked_positive(name, file_.f32(key(name), fallback));
}

float gguf_header::not_negative(std::string_view name) const
{
    float const value = file_.f32(key(name), 0.0f);
    if (!std::isfinite(value) || value < 0) fail(name, std::to_string(value) + " is negative or not finite");
    return value;
}

void gguf_header::neutral(std::string_view name, std::initializer_list<float> values) const
{
    if (!has(name)) return;
    float const value = file_.f32(key(name));
    if (std::ranges::find(values, value) == values.end())
        fail(name, std::to_string(value) + " changes the computation", errc::unsupported);
}

void gguf_header::neutral(std::string_view name, bool value) const
{
    if (boolean_or(name, value) != value) fail(name, "changes the computation", errc::unsupported);
}

tensor_ref gguf_header::optional(std::string const& name) const
{
    return file_.find_tensor(name) == nullptr ? tensor_ref() : tensor_ref(name);
}

bool gguf_header::there(presence which, std::string const& first) const
{
    return which == presence::required || (which == presence::optional && file_.find_tensor(first) != nullptr);
}

std::int64_t gguf_header::vocabulary() const
{
    std::int64_t const rows = file_.tensor("token_embd.weight").dims[1];
    auto const disagree = [&](std::string const& stated) {
        return stated + " tokens, but 'token_embd.weight' has " + std::to_string(rows) + " rows";
    };
    if (has("vocab_size") && file_.u32(key("vocab_size")) != rows)
        fail("vocab_size", disagree(std::to_string(file_.u32(key("vocab_size")))));
    gguf_entry const* tokens = file_.find_entry("tokenizer.ggml.tokens");
    if (tokens != nullptr && tokens->type == gguf_type::array && tokens->count != static_cast<std::uint64_t>(rows))
        throw error(errc::bad_file,
                    file_.source() + ": key 'tokenizer.ggml.tokens': " + disagree(std::to_string(tokens->count)));
    return rows;
}

attention_spec gguf_header::attention(std::int64_t width, std::int64_t heads, std::int64_t kv_heads) const
{
    attention_spec attention;
    attention.heads = heads;
    attention.kv_heads = kv_heads;
    std::string_view const heads_key = "attention.head_count";
    std::string_view const kv_key = "attention.head_count_kv";
    if (kv_heads > heads)
        fail(kv_key, std::to_string(kv_heads) + " KV heads are more than the " + std::to_string(heads) + " heads");
    if (heads % kv_heads != 0)
        fail(kv_key, std::to_string(kv_heads) + " KV heads do not divide the " + std::to_string(heads) + " heads");
    attention.head_dim = size_or("attention.key_length", 0);
    if (attention.head_dim == 0) {
        if (width % heads != 0)
            fail(heads_key, std::to_string(heads) + " heads do not divide the width " + std::to_string(width));
        attention.head_dim = width / heads;
    }
    if (attention.head_dim > max_head_dim)
        fail(has("attention.key_length") ? "attention.key_length" : heads_key,
             "heads of " + std::to_string(attention.head_dim) + "; at most " + std::to_string(max_head_dim) +
                 " are computed");
    if (attention.query_width() > max_dimension)
        fail(heads_key, std::to_string(heads) + " heads of " + std::to_string(attention.head_dim) + " are wider than " +
                            std::to_string(max_dimension));
    std::int64_t const value_dim = size_or("attention.value_length", attention.head_dim);
    if (value_dim != attention.head_dim)
        fail("attention.value_length",
             std::to_string(value_dim) + " differs from the keys' " + std::to_string(attention.head_dim),
             errc::unsupported);
    attention.scale = positive_or("attention.scale", 1.0f / std::sqrt(static_cast<float>(attention.head_dim)));
    attention.soft_cap = not_negative("attn_logit_softcapping");
    attention.window = static_cast<std::int64_t>(file_.u32(key("attention.sliding_window"), 0));
    return attention;
}

std::vector<float> gguf_header::factors(std::string const& tensor, std::int64_t dims) const
{
    auto const fail = [&](errc code, std::string const& what) {
        throw error(code, file_.source() + ": tensor '" + tensor + "': " + what);
    };
    auto const& stored = file_.tensor(tensor);
    if (stored.type != ggml_type::f32)
        fail(errc::unsupported, "expected F32 values, found " + std::string(layout(stored.type).name));
    if (stored.cols() != dims / 2 || stored.rows() != 1)
        fail(errc::bad_file, "expected the shape [" + std::to_string(dims / 2) + "], found " + shape(stored));
    std::vector<float> out(static_cast<std::size_t>(dims / 2));
    file_.read(stored, 0, std::as_writable_bytes(std::span(out)));
    for (float const factor : out)
        if (!std::isfinite(factor) || factor <= 0)
            fail(errc::bad_file, "the factor " + std::to_string(factor) + " is not a positive finite number");
    return out;
}

/// By the tensors that some files have, or by rope.scaling.
void gguf_header::scale_rope(rope_spec& rope, std::int64_t context) const
{
    if (file_.find_tensor("rope_factors_long.weight") != nullptr) {
        rope.short_context = size("rope.scaling.original_context_length");
        rope.factors = factors("rope_factors_short.weight", rope.dims);
        rope.long_factors = factors("rope_factors_long.weight", rope.dims);
        auto const factor = static_cast<double>(context) / static_cast<double>(rope.short_context);
        rope.magnitude =
            positive_or("rope.scaling.attn_factor", static_cast<float>(longrope_magnitude(factor, rope.short_context)));
        return;
    }
    if (file_.find_tensor("rope_freqs.weight") != nullptr) rope.factors = factors("rope_freqs.weight", rope.dims);
    std::string_view const type = file_.string(key("rope.scaling.type"), "linear");
    if (type == "none") return;
    if (type == "linear") {
        for (std::string_view const name : {"rope.scaling.factor", "rope.scale_linear"}) {
            if (!has(name)) continue;
            // Writers put 0 where there is no scaling.
            rope.linear_scale = file_.f32(key(name)) == 0.0f ? 1.0f : positive(name);
            return;
        }
        return;
    }
    if (type != "yarn")
        fail("rope.scaling.type", quote(type) + " scaling is not computed; none, linear and yarn are",
             errc::unsupported);
    yarn_scaling yarn;
    yarn.factor = positive("rope.scaling.factor");
    yarn.original_context = size_or("rope.scaling.original_context_length", context);
    yarn.beta_fast = positive_or("rope.scaling.yarn_beta_fast", 32);
    yarn.beta_slow = positive_or("rope.scaling.yarn_beta_slow", 1);
    // OpenAI's models leave the bounds of the range as they are, which no key says.
    yarn.truncate = architecture_ != "gpt-oss";
    if (!rope.factors.empty()) fail("rope.scaling.type", "yarn, and the file has factors of its own as well");
    rope.factors = yarn_factors(rope.dims, rope.base, yarn);
    rope.magnitude = static_cast<float>(yarn_magnitude(yarn.factor)) * positive_or("rope.scaling.attn_factor", 1.0f);
}

rope_spec gguf_header::rope(family_layout const& how, std::int64_t head_dim, std::int64_t context) const
{
    rope_spec rope;
    rope.style = how.rope;
    if (how.rope == rope_style::none) return rope;
    std::string_view const dims_key = "rope.dimension_count";
    rope.dims = size_or(dims_key, head_dim);
    if (rope.dims % 2 != 0 || rope.dims > head_dim)
        fail(dims_key,
             std::to_string(rope.dims) + " is not an even number up to the head's " + std::to_string(head_dim));
    rope.base = positive_or("rope.freq_base", 10000.0f);
    if (rope.base <= 1) fail("rope.freq_base", std::to_string(rope.base) + " is not above 1");
    scale_rope(rope, context);
    return rope;
}

/// What the mixture of a layer is, without its tensors; of a model without one nothing. `hidden` is the size of an
/// expert where no key says.
experts_spec gguf_header::experts(family_layout const& how, std::int64_t hidden) const
{
    experts_spec e;
    if (file_.u32(key("expert_count"), 0) == 0) return e;
    if (!how.scoring) fail("expert_count", "mixtures of experts are not computed", errc::unsupported);
    e.count = checked("expert_count", file_.u32(key("expert_count")), max_experts);
    e.used = size("expert_used_count");
    e.hidden = size_or("expert_feed_forward_length", hidden);
    e.scoring = *how.scoring;
    // As llama.cpp numbers them; no key, or 0, says nothing.
    auto const gating = file_.u32(key("expert_gating_func"), 0);
    if (gating == 2)
        e.scoring = routing::sigmoid;
    else if (gating == 3)
        e.scoring = routing::softmax_of_chosen;
    else if (gating > 3)
        fail("expert_gating_func", std::to_string(gating) + " is not computed; 1, 2 and 3 are", errc::unsupported);
    else if (gating == 1 && e.scoring == routing::sigmoid)
        e.scoring = routing::softmax;
    e.normalised = boolean_or("expert_weights_norm", how.normalised);
    float const scale = not_negative("expert_weights_scale");
    e.scale = scale == 0 ? 1 : scale; // writers put 0 where there is none
    e.groups = size_or("expert_group_count", 1);
    e.groups_used = size_or("expert_group_used_count", 1);
    if (auto const shared = static_cast<std::int64_t>(file_.u32(key("expert_shared_count"), 0)); shared > 0)
        e.shared_hidden = size_or("expert_shared_feed_forward_length",
                                  checked("expert_shared_count", shared, max_dimension / e.hidden) * e.hidden);
    return e;
}

/// The experts lie one behind the other in one tensor.
void gguf_header::name_experts(family_layout const& how, std::size_t i, layer_spec& layer, layer_tensors& at) const
{
    auto& e = layer.ffn.experts;
    auto const name = [&](std::string_view of) { return "blk." + std::to_string(i) + "." + std::string(of); };
    at.router = name("ffn_gate_inp.weight");
    // A file has no more experts than rows for them: nothing is reserved for a lie.
    if (auto const rows = file_.tensor(at.router.name).rows(); rows != e.count)
        fail("expert_count",
             std::to_string(e.count) + " experts, but '" + at.router.name + "' has " + std::to_string(rows) + " rows");
    e.router_bias = there(how.router_bias, name("ffn_gate_inp.bias"));
    if (e.router_bias) at.router_bias = name("ffn_gate_inp.bias");
    e.selection_bias = there(how.selection_bias, name("exp_probs_b.bias"));
    if (e.selection_bias) at.selection_bias = name("exp_probs_b.bias");
    e.bias = there(how.expert_bias, name("ffn_up_exps.bias"));
    auto const width = size("embedding_length");
    // Files from before experts were stacked have a tensor for each part of each of them.
    bool const apart = file_.find_tensor(name("ffn_gate_exps.weight")) == nullptr &&
                       file_.find_tensor(name("ffn_gate.0.weight")) != nullptr;
    for (std::int64_t expert = 0; expert < e.count; ++expert) {
        auto const part = [&](std::string_view of, std::int64_t rows) {
            if (apart) {
                auto const kind = of.substr(0, of.find("_exps"));
                return tensor_ref(name(std::string(kind) + "." + std::to_string(expert) + ".weight"));
            }
            return tensor_ref(name(of)).rows(expert * rows, rows);
        };
        ffn_tensors network;
        network.gate = part("ffn_gate_exps.weight", e.hidden);
        network.up = part("ffn_up_exps.weight", e.hidden);
        network.down = part("ffn_down_exps.weight", width);
        if (e.bias) {
            network.gate_bias = part("ffn_gate_exps.bias", e.hidden);
            network.up_bias = part("ffn_up_exps.bias", e.hidden);
            network.down_bias = part("ffn_down_exps.bias", width);
        }
        at.experts.push_back(std::move(network));
    }
    if (e.shared_hidden == 0) return;
    at.ffn.gate = name("ffn_gate_shexp.weight");
    at.ffn.up = name("ffn_up_shexp.weight");
    at.ffn.down = name("ffn_down_shexp.weight");
}

void gguf_header::name_layer(family_layout const& how, gguf_names const& names, std::size_t i, layer_spec& layer,
                             layer_tensors& at) const
{
    auto const name = [&](std::string_view of, std::size_t l) {
        return "blk." + std::to_string(l) + "." + std::string(of);
    };
    auto const weight = [&](std::string_view of) { return tensor_ref(name(std::string(of) + ".weight", i)); };
    auto const bias = [&](std::string_view of) { return tensor_ref(name(std::string(of) + ".bias", i)); };
    auto const norm = [&](std::string_view of) {
        return norm_tensors{weight(of), layer.norm.bias ? bias(of) : tensor_ref()};
    };
    bool const output_norms = how.placement == norm_placement::sandwich || how.placement == norm_placement::output;
    if (how.placement != norm_placement::output) {
        at.attention_norm = norm("attn_norm");
        if (!how.shared_norm) at.ffn_norm = norm(names.ffn_norm);
    }
    if (output_norms) {
        at.attention_output_norm = norm("post_attention_norm");
        at.ffn_output_norm = norm("post_ffw_norm");
    }

    auto& a = layer.attention;
    std::string const first_bias = name(how.fused_qkv ? "attn_qkv.bias" : "attn_q.bias", 0);
    a.query_key_value_bias = there(how.qkv_bias, first_bias);
    if (how.fused_qkv) {
        auto const split = [&](tensor_ref const& whole, tensor_ref& q, tensor_ref& k, tensor_ref& v) {
            q = whole.rows(0, a.query_width());
            k = whole.rows(a.query_width(), a.kv_width());
            v = whole.rows(a.query_width() + a.kv_width(), a.kv_width());
        };
        split(weight("attn_qkv"), at.query, at.key, at.value);
        if (a.query_key_value_bias) split(bias("attn_qkv"), at.query_bias, at.key_bias, at.value_bias);
    } else {
        at.query = weight("attn_q");
        at.key = weight("attn_k");
        at.value = weight("attn_v");
        if (a.query_key_value_bias) {
            at.query_bias = bias("attn_q");
            at.key_bias = bias("attn_k");
            at.value_bias = bias("attn_v");
        }
    }
    if (there(how.head_norms, name("attn_q_norm.weight", 0))) {
        a.query_key_norm = how.head_norms_over;
        a.norm = {.kind = layer.norm.kind, .epsilon = layer.norm.epsilon};
        at.query_norm.weight = weight("attn_q_norm");
        at.key_norm.weight = weight("attn_k_norm");
    }
    at.attention_output = weight("attn_output");
    a.output_bias = there(how.output_bias, name("attn_output.bias", 0));
    if (a.output_bias) at.attention_output_bias = bias("attn_output");
    a.sinks = there(how.sinks, name("attn_sinks.weight", 0));
    if (a.sinks) at.sinks = weight("attn_sinks");

    auto& ffn = layer.ffn;
    ffn.activation = how.activation;
    ffn.gated = how.gated;
    if (ffn.experts.count > 0) return name_experts(how, i, layer, at);
    ffn.bias = there(how.ffn_bias, name("ffn_up.bias", 0));
    at.ffn.down = weight("ffn_down");
    at.ffn.up = weight("ffn_up");
    if (ffn.bias) {
        at.ffn.up_bias = bias("ffn_up");
        at.ffn.down_bias = bias("ffn_down");
    }
    if (!how.gated) return;
    if (how.fused_gate_up) {
        at.ffn.gate = at.ffn.up.rows(0, ffn.hidden);
        at.ffn.up = at.ffn.up.rows(ffn.hidden, ffn.hidden);
    } else {
        at.ffn.gate = weight("ffn_gate");
        if (ffn.bias) at.ffn.gate_bias = bias("ffn_gate");
    }
}

described_model gguf_header::describe(family_layout const& how, gguf_names const& names) const
{
    neutral("attention.causal", true);
    neutral("attention.clamp_kqv", {0.0f});
    neutral("attention.max_alibi_bias", {0.0f});

    described_model model;
    model_spec& spec = model.spec;
    spec.architecture = architecture_;
    spec.name = file_.string("general.name", "");
    spec.context = checked("context_length", static_cast<std::int64_t>(file_.u32(key("context_length"))), max_context);
    spec.width = size("embedding_length");
    spec.vocabulary = vocabulary();
    spec.embedding_scale = positive_or("embedding_scale", 1.0f);
    spec.logit_cap = not_negative("final_logit_softcapping");

    std::string_view const epsilon_key =
        how.norm == norm_kind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
    norm_spec norm{.kind = how.norm, .epsilon = positive(epsilon_key)};
    norm.bias = there(how.norm_bias, "output_norm.bias");
    if (norm.epsilon >= 1) fail(epsilon_key, std::to_string(norm.epsilon) + " is not below 1");
    spec.final_norm = norm;

    // Every layer needs tensors, so a file cannot have more layers than tensors: nothing is reserved for a lie.
    auto const blocks = static_cast<std::size_t>(checked("block_count", file_.u32(key("block_count")), max_layers));
    if (blocks > file_.tensors().size())
        fail("block_count", std::to_string(blocks) + " layers, but the file has only " +
                                std::to_string(file_.tensors().size()) + " tensors");
    std::string_view const ahead_key = "nextn_predict_layers";
    std::size_t const ahead = file_.u32(key(ahead_key), 0);
    if (ahead != 0) checked(ahead_key, static_cast<std::int64_t>(ahead), max_layers_ahead);
    if (ahead >= blocks)
        fail(ahead_key, std::to_string(ahead) + " of " + std::to_string(blocks) + " layers guess ahead");
    auto const layers = blocks - ahead;
    auto const heads = sizes("attention.head_count", blocks);
    auto const kv_heads = has("attention.head_count_kv") ? sizes("attention.head_count_kv", blocks) : heads;
    auto const hidden = sizes("feed_forward_length", blocks);
    auto const dense = file_.u32(key("leading_dense_block_count"), 0);
    for (std::size_t i = 0; i < layers; ++i) {
        layer_spec layer;
        layer.norm = norm;
        layer.placement = how.placement;
        layer.shared_norm = how.shared_norm;
        layer.parallel = how.parallel;
        layer.attention = attention(spec.width, heads[i], kv_heads[i]);
        layer.attention.rope = rope(how, layer.attention.head_dim, spec.context);
        if (i >= dense) layer.ffn.experts = experts(how, hidden[i]);
        if (layer.ffn.experts.count == 0) layer.ffn.hidden = hidden[i];
        layer_tensors at;
        name_layer(how, names, i, layer, at);
        spec.layers.push_back(std::move(layer));
        model.tensors.layers.push_back(std::move(at));
    }
    for (auto i = layers; i < blocks; ++i)
        for (auto const& tensor : file_.tensors())
            if (tensor.name.starts_with("blk." + std::to_string(i) + ".")) model.tensors.read.emplace_back(tensor.name);

    spec.tied_output = file_.find_tensor("output.weight") == nullptr;
    model.tensors.token_embedding = "token_embd.weight";
    model.tensors.output = optional("output.weight");
    model.tensors.output_norm.weight = "output_norm.weight";
    if (norm.bias) model.tensors.output_norm.bias = "output_norm.bias";
    for (char const* name : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
        if (file_.find_tensor(name) != nullptr) model.tensors.read.emplace_back(name);
    return model;
}

} // namespace plait
