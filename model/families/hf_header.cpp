#include <plait/model/families/hf_header.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/limits.hpp>
#include <plait/model/families/rope_scaling.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plait {
namespace {

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

std::vector<float> factors_of(json_config const& in, std::string_view field, std::int64_t dims)
{
    auto const values = in.numbers(field);
    if (values.size() != static_cast<std::size_t>(dims / 2))
        refuse(in, field, std::to_string(values.size()) + " factors for " + std::to_string(dims / 2) + " frequencies");
    std::vector<float> out;
    out.reserve(values.size());
    for (double const value : values) {
        if (!std::isfinite(value) || value <= 0)
            refuse(in, field, std::to_string(value) + " is not a positive finite number");
        out.push_back(static_cast<float>(value));
    }
    return out;
}

/// Sets what `scaling` says; it may name its type in either of two fields. `all` is the config.
void scale(rope_spec& rope, json_config const& scaling, json_config const& all)
{
    auto const context = [&] { return size_of(all, "max_position_embeddings", max_context); };
    std::string_view const field = scaling.has("rope_type") ? "rope_type" : "type";
    std::string const type = scaling.string(field, "default");
    if (type == "default" || type == "none") return;
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
                                   : context();
        how.beta_fast = positive_of(scaling, "beta_fast", 32);
        how.beta_slow = positive_of(scaling, "beta_slow", 1);
        how.truncate = scaling.boolean("truncate", true);
        rope.factors = yarn_factors(rope.dims, rope.base, how);
        double magnitude = yarn_magnitude(how.factor);
        if (scaling.has("mscale") && scaling.has("mscale_all_dim"))
            magnitude = yarn_magnitude(how.factor, positive_of(scaling, "mscale")) /
                        yarn_magnitude(how.factor, positive_of(scaling, "mscale_all_dim"));
        rope.magnitude = static_cast<float>(positive_of(scaling, "attention_factor", magnitude));
    } else if (type == "longrope" || type == "su") {
        // Where the context that it was made for is stated twice, the one beside the context counts.
        auto const& original = all.has("original_max_position_embeddings") ? all : scaling;
        rope.short_context = size_of(original, "original_max_position_embeddings", max_context);
        rope.factors = factors_of(scaling, "short_factor", rope.dims);
        rope.long_factors = factors_of(scaling, "long_factor", rope.dims);
        auto const stretch = static_cast<double>(context()) / static_cast<double>(rope.short_context);
        auto const factor = positive_of(scaling, "factor", stretch);
        rope.magnitude = static_cast<float>(
            positive_of(scaling, "attention_factor", longrope_magnitude(factor, rope.short_context)));
    } else {
        refuse(scaling, field, quote(type) + " scaling is not computed; default, linear, llama3, yarn and longrope are",
               errc::unsupported);
    }
}

} // namespace

hf_header::hf_header(hf_directory const& folder)
    : folder_(folder)
    , config_(folder.config().find_object("text_config").value_or(folder.config()))
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

float hf_header::positive_or(std::string_view field, float fallback) const
{
    return config().has(field) ? positive(field) : fallback;
}

float hf_header::not_negative(std::string_view field) const
{
    double const value = config().number(field, 0);
    if (!std::isfinite(value) || value < 0) fail(field, std::to_string(value) + " is negative or not finite");
    return static_cast<float>(value);
}

void hf_header::neutral(std::string_view field, bool value) const
{
    if (config().boolean(field, value) != value) fail(field, "changes the computation", errc::unsupported);
}

std::vector<bool> hf_header::windowed(std::size_t layers, std::function<bool(std::size_t)> const& otherwise) const
{
    std::vector<bool> out(layers);
    if (!config().has("layer_types")) {
        for (std::size_t i = 0; i < layers; ++i)
            out[i] = otherwise(i);
        return out;
    }
    auto const types = config().strings("layer_types");
    if (types.size() < layers)
        fail("layer_types",
             "has " + std::to_string(types.size()) + " entries for " + std::to_string(layers) + " layers");
    for (std::size_t i = 0; i < layers; ++i) {
        out[i] = types[i] == "sliding_attention";
        if (!out[i] && types[i] != "full_attention")
            fail("layer_types", quote(types[i]) + " is not computed; full_attention and sliding_attention are",
                 errc::unsupported);
    }
    return out;
}

std::vector<bool> hf_header::windowed(std::size_t layers, std::int64_t interval) const
{
    return windowed(layers, [interval](std::size_t i) { return !ends_interval(i, interval); });
}

void hf_header::set_windows(described_model& model) const
{
    for (auto& layer : model.spec.layers)
        layer.attention.window = size_or("sliding_window", 0);
}

void hf_header::set_windows(described_model& model, std::function<bool(std::size_t)> const& otherwise) const
{
    auto const windows = windowed(model.spec.layers.size(), otherwise);
    for (std::size_t i = 0; i < windows.size(); ++i)
        if (windows[i]) model.spec.layers[i].attention.window = size("sliding_window");
}

void hf_header::set_windows(described_model& model, std::int64_t interval) const
{
    set_windows(model, [interval](std::size_t i) { return !ends_interval(i, interval); });
}

void hf_header::set_switched_windows(described_model& model) const
{
    if (!config().boolean("use_sliding_window", false)) return;
    auto const first = config().integer("max_window_layers", 28);
    set_windows(model, [first](std::size_t i) { return static_cast<std::int64_t>(i) >= first; });
}

rope_spec hf_header::rope(family_layout const& how, std::int64_t head_dim, std::string_view kind) const
{
    if (how.rope == rope_style::none) return {};
    auto const& all = config();
    auto parameters = all.find_object("rope_parameters");
    if (parameters && parameters->is_object(kind)) parameters = parameters->object(kind);
    json_config const& base = parameters && parameters->has("rope_theta") ? *parameters : all;
    json_config const& partial = parameters && parameters->has("partial_rotary_factor") ? *parameters : all;
    std::string_view const base_field = base.has("rotary_emb_base") ? "rotary_emb_base" : "rope_theta";
    std::string_view const part_field = partial.has("rotary_pct") ? "rotary_pct" : "partial_rotary_factor";
    rope_spec rope;
    rope.style = how.rope;
    rope.base = static_cast<float>(positive_of(base, base_field, 10000));
    if (rope.base <= 1) refuse(base, base_field, std::to_string(rope.base) + " is not above 1");
    double const part = positive_of(partial, part_field, how.rotated);
    rope.dims = static_cast<std::int64_t>(static_cast<double>(head_dim) * std::min(part, 2.0));
    if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_dim)
        refuse(partial, part_field,
               std::to_string(rope.dims) + " is not an even number up to the head's " + std::to_string(head_dim));
    if (parameters)
        scale(rope, *parameters, all);
    else if (auto const scaling = all.find_object("rope_scaling"))
        scale(rope, *scaling, all);
    return rope;
}

activation_kind hf_header::activation(family_layout const& how, hf_names const& names) const
{
    if (!config().has(names.activation)) return how.activation;
    auto const kind = config().string(names.activation);
    if (kind == "silu" || kind == "swish") return activation_kind::silu;
    if (kind == "gelu" && !names.gelu_is_tanh) return activation_kind::gelu_erf;
    if (kind == "gelu" || kind == "gelu_new" || kind == "gelu_pytorch_tanh") return activation_kind::gelu_tanh;
    if (kind == "relu") return activation_kind::relu;
    if (kind == "relu2") return activation_kind::relu_squared;
    fail(names.activation,
         quote(kind) + " is not computed; silu, gelu, gelu_new, gelu_pytorch_tanh, relu and relu2 are",
         errc::unsupported);
}

attention_spec hf_header::attention(std::int64_t width, family_layout const& how, hf_names const& names) const
{
    attention_spec attention;
    attention.heads = size(names.heads);
    attention.kv_heads = size_or(names.kv_heads, attention.heads);
    auto const heads = std::to_string(attention.heads) + " heads";
    if (attention.kv_heads > attention.heads || attention.heads % attention.kv_heads != 0)
        fail(names.kv_heads, std::to_string(attention.kv_heads) + " KV heads do not divide the " + heads);
    if (!config().has(names.head_dim) && width % attention.heads != 0)
        fail(names.heads, heads + " do not divide the width " + std::to_string(width));
    attention.head_dim = size_or(names.head_dim, width / attention.heads);
    if (attention.head_dim > max_head_dim)
        fail(config().has(names.head_dim) ? names.head_dim : names.heads,
             "heads of " + std::to_string(attention.head_dim) + "; at most " + std::to_string(max_head_dim) +
                 " are computed");
    if (attention.query_width() > max_dimension)
        fail(names.head_dim, heads + " of " + std::to_string(attention.head_dim) + " are too wide");
    attention.scale = 1.0f / std::sqrt(static_cast<float>(attention.head_dim));
    attention.rope = rope(how, attention.head_dim);
    return attention;
}

/// Names the tensors of one layer after another.
class hf_header::namer {
public:
    namer(hf_header const& header, family_layout const& how, hf_names const& names)
        : header_(header)
        , how_(how)
        , names_(names)
        , width_(header.size(names.width))
    {
    }

    layer_tensors operator()(std::size_t i, layer_spec& layer)
    {
        layer_ = i;
        layer_tensors at;
        norms(layer, at);
        attention(layer, at);
        if (layer.ffn.experts.count > 0)
            mixture(layer.ffn, at);
        else
            network(layer.ffn, at.ffn);
        return at;
    }

    norm_tensors norm(std::string const& name, bool bias) const
    {
        norm_tensors out{tensor_ref(name + ".weight"), bias ? tensor_ref(name + ".bias") : tensor_ref()};
        out.weight.plus = names_.norm_plus;
        return out;
    }

    bool there(presence which, std::string const& tensor) const
    {
        return which == presence::required || (which == presence::optional && header_.has(tensor));
    }

private:
    std::string name(std::size_t layer, std::string_view of) const
    {
        return std::string(names_.prefix) + std::string(names_.layer) + std::to_string(layer) + "." + std::string(of);
    }
    tensor_ref matrix(std::string_view of) const
    {
        tensor_ref out(name(layer_, of) + ".weight");
        out.transposed = names_.transposed;
        return out;
    }
    tensor_ref bias(std::string_view of) const { return {name(layer_, of) + ".bias"}; }
    bool there(presence which, std::string_view of, char const* suffix) const
    {
        return there(which, name(0, of) + suffix);
    }

    void norms(layer_spec const& layer, layer_tensors& at) const
    {
        auto const of = [&](std::string_view which) { return norm(name(layer_, which), layer.norm.bias); };
        if (how_.placement != norm_placement::output) {
            at.attention_norm = of(names_.attention_norm);
            if (!how_.shared_norm) at.ffn_norm = of(names_.ffn_norm);
        }
        if (how_.placement == norm_placement::sandwich || how_.placement == norm_placement::output) {
            at.attention_output_norm = of(names_.attention_output_norm);
            at.ffn_output_norm = of(names_.ffn_output_norm);
        }
    }

    /// Queries, keys and values in one matrix or vector.
    void split(attention_spec const& a, tensor_ref const& whole, tensor_ref& q, tensor_ref& k, tensor_ref& v) const
    {
        if (names_.qkv_by_head) {
            q = whole.runs(0, a.head_dim, 3 * a.head_dim);
            k = whole.runs(a.head_dim, a.head_dim, 3 * a.head_dim);
            v = whole.runs(2 * a.head_dim, a.head_dim, 3 * a.head_dim);
            return;
        }
        q = whole.rows(0, a.query_width());
        k = whole.rows(a.query_width(), a.kv_width());
        v = whole.rows(a.query_width() + a.kv_width(), a.kv_width());
    }

    void attention(layer_spec& layer, layer_tensors& at) const
    {
        auto& a = layer.attention;
        a.query_key_value_bias = there(how_.qkv_bias, how_.fused_qkv ? names_.qkv : names_.query, ".bias");
        if (how_.fused_qkv) {
            split(a, matrix(names_.qkv), at.query, at.key, at.value);
            if (a.query_key_value_bias) split(a, bias(names_.qkv), at.query_bias, at.key_bias, at.value_bias);
        } else {
            at.query = matrix(names_.query);
            at.key = matrix(names_.key);
            at.value = matrix(names_.value);
            if (a.query_key_value_bias) {
                at.query_bias = bias(names_.query);
                at.key_bias = bias(names_.key);
                at.value_bias = bias(names_.value);
            }
        }
        if (there(how_.head_norms, names_.query_norm, ".weight")) {
            a.query_key_norm = how_.head_norms_over;
            a.norm = {.kind = layer.norm.kind, .epsilon = layer.norm.epsilon};
            at.query_norm = norm(name(layer_, names_.query_norm), false);
            at.key_norm = norm(name(layer_, names_.key_norm), false);
        }
        at.attention_output = matrix(names_.attention_output);
        a.output_bias = there(how_.output_bias, names_.attention_output, ".bias");
        if (a.output_bias) at.attention_output_bias = bias(names_.attention_output);
        a.sinks = there(how_.sinks, names_.sinks, "");
        if (a.sinks) at.sinks = name(layer_, names_.sinks);
    }

    void mixture(ffn_spec& ffn, layer_tensors& at) const
    {
        auto& e = ffn.experts;
        at.router = matrix(names_.router);
        // A file has no more experts than rows for them: nothing is reserved for a lie.
        if (auto const rows = header_.folder_.tensor(at.router.name).rows(); rows != e.count)
            header_.fail(header_.experts_field(), std::to_string(e.count) + " experts, but " + quote(at.router.name) +
                                                      " has " + std::to_string(rows) + " rows");
        e.router_bias = there(how_.router_bias, name(layer_, names_.router) + ".bias");
        if (e.router_bias) at.router_bias = bias(names_.router);
        e.selection_bias = there(how_.selection_bias, name(layer_, names_.selection_bias));
        if (e.selection_bias) at.selection_bias = name(layer_, names_.selection_bias);
        if (names_.experts_stacked)
            stacked_experts(e, at);
        else
            for (std::int64_t i = 0; i < e.count; ++i)
                at.experts.push_back(parts(std::string(names_.experts) + "." + std::to_string(i) + "."));
        if (e.shared_hidden > 0) at.ffn = parts(std::string(names_.shared_expert) + ".");
    }

    ffn_tensors parts(std::string const& of) const
    {
        ffn_tensors out;
        out.gate = matrix(of + std::string(names_.expert_gate));
        out.up = matrix(of + std::string(names_.expert_up));
        out.down = matrix(of + std::string(names_.expert_down));
        return out;
    }

    /// Stored as experts × inputs × outputs; in blocks of a quantised format as experts × outputs × inputs.
    void stacked_experts(experts_spec& e, layer_tensors& at) const
    {
        std::string const of = name(layer_, names_.experts) + ".";
        tensor_ref gate_up(of + "gate_up_proj"), down(of + "down_proj");
        auto const type = header_.folder_.tensor(down.name).type;
        bool const inputs_first = type == ggml_type::f32 || type == ggml_type::f16 || type == ggml_type::bf16;
        gate_up.transposed = down.transposed = inputs_first;
        e.bias = there(how_.expert_bias, of + "down_proj_bias");
        for (std::int64_t i = 0; i < e.count; ++i) {
            auto const row = i * 2 * e.hidden; // of gate and up, and of their biases
            auto const both = inputs_first ? gate_up.inputs_from(i * width_) : gate_up.rows(row, 2 * e.hidden);
            ffn_tensors network;
            network.gate = both.runs(0, 1, 2);
            network.up = both.runs(1, 1, 2);
            network.down =
                inputs_first ? down.rows(0, width_).inputs_from(i * e.hidden) : down.rows(i * width_, width_);
            if (e.bias) {
                tensor_ref const biases(of + "gate_up_proj_bias");
                network.gate_bias = biases.runs(row, 1, 2);
                network.up_bias = biases.runs(row + 1, 1, 2);
                network.down_bias = tensor_ref(of + "down_proj_bias").rows(i * width_, width_);
            }
            at.experts.push_back(std::move(network));
        }
    }

    void network(ffn_spec& ffn, ffn_tensors& at) const
    {
        ffn.bias = there(how_.ffn_bias, names_.up, ".bias");
        at.up = matrix(names_.up);
        at.down = matrix(names_.down);
        if (ffn.bias) {
            at.up_bias = bias(names_.up);
            at.down_bias = bias(names_.down);
        }
        if (!ffn.gated) return;
        if (how_.fused_gate_up) {
            auto const both = matrix(names_.gate_up);
            at.gate = both.rows(0, ffn.hidden);
            at.up = both.rows(ffn.hidden, ffn.hidden);
        } else {
            at.gate = matrix(names_.gate);
            if (ffn.bias) at.gate_bias = bias(names_.gate);
        }
    }

    hf_header const& header_;
    family_layout const& how_;
    hf_names const& names_;
    std::int64_t width_;
    std::size_t layer_ = 0;
};

/// The number of experts has the name that the family gave it; transformers 5 writes the first one for most.
std::string_view hf_header::experts_field() const
{
    for (std::string_view const field : {"num_local_experts", "num_experts"})
        if (config().has(field)) return field;
    return "n_routed_experts";
}

/// What the mixture of a layer is, without its tensors; of a family without mixtures nothing.
experts_spec hf_header::experts(family_layout const& how, hf_names const& names) const
{
    experts_spec e;
    if (!how.scoring) return e;
    e.count = size_of(config(), experts_field(), max_experts);
    e.used = size("num_experts_per_tok");
    e.hidden = size(names.expert_hidden);
    e.scoring = *how.scoring;
    e.normalised = config().boolean("norm_topk_prob", how.normalised);
    e.scale = positive_or("routed_scaling_factor", 1);
    e.groups = size_or("n_group", 1);
    e.groups_used = size_or("topk_group", 1);
    std::string_view const shared = "n_shared_experts";
    if (config().integer(shared, 0) != 0)
        e.shared_hidden = size_of(config(), shared, max_dimension / e.hidden) * e.hidden;
    return e;
}

/// Which layers have a mixture in place of a dense network.
std::vector<bool> hf_header::sparse(std::size_t layers) const
{
    std::vector<bool> out(layers);
    auto const first = config().integer("first_k_dense_replace", 0);
    auto const step = size_or("decoder_sparse_step", 1);
    for (std::size_t i = 0; i < layers; ++i) {
        auto const layer = static_cast<std::int64_t>(i);
        out[i] = layer >= first && (layer + 1) % step == 0;
    }
    if (!config().has("mlp_only_layers")) return out;
    for (auto const dense : config().integers("mlp_only_layers"))
        if (dense >= 0 && static_cast<std::size_t>(dense) < layers) out[static_cast<std::size_t>(dense)] = false;
    return out;
}

void hf_header::leave_out_layers_ahead(described_model& model, hf_names const& names) const
{
    std::string_view const field = "num_nextn_predict_layers";
    if (config().integer(field, 0) == 0) return;
    auto const ahead = static_cast<std::size_t>(size_of(config(), field, max_layers_ahead));
    for (auto i = model.spec.layers.size(); i < model.spec.layers.size() + ahead; ++i) {
        std::string const start = std::string(names.prefix) + std::string(names.layer) + std::to_string(i) + ".";
        for (auto const& tensor : folder_.tensors())
            if (tensor.name.starts_with(start)) model.tensors.read.emplace_back(tensor.name);
    }
}

/// A config that ties the output means it, also where a file has a copy of the embedding for it.
void hf_header::name_output(described_model& model, hf_names const& names) const
{
    std::string const output = std::string(names.output) + ".weight";
    model.spec.tied_output = config().boolean("tie_word_embeddings", !has(output));
    // A default of transformers that a config leaves out says less than the tensor.
    if (!config().has("tie_word_embeddings") && has(output)) model.spec.tied_output = false;
    if (!model.spec.tied_output)
        model.tensors.output = output;
    else if (has(output))
        model.tensors.read.push_back(output);
    // Old checkpoints keep the frequencies and masks that follow from the config.
    for (auto const& tensor : folder_.tensors())
        for (std::string_view const buffer : {".rotary_emb.inv_freq", ".rotary_pos_emb.inv_freq", ".attn.bias",
                                              ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"})
            if (tensor.name.ends_with(buffer)) model.tensors.read.emplace_back(tensor.name);
}

described_model hf_header::describe(family_layout const& how, hf_names const& names) const
{
    described_model model;
    model_spec& spec = model.spec;
    namer name(*this, how, names);
    spec.architecture = config().string("model_type");
    spec.name = folder_.folder().filename().string();
    spec.context = size_of(config(), names.context, max_context);
    spec.width = size(names.width);
    spec.vocabulary = size(names.vocabulary);
    std::string const prefix(names.prefix);
    std::string const output_norm = prefix + std::string(names.output_norm);
    norm_spec norm{.kind = how.norm, .epsilon = positive(names.epsilon)};
    if (norm.epsilon >= 1) fail(names.epsilon, std::to_string(norm.epsilon) + " is not below 1");
    norm.bias = name.there(how.norm_bias, output_norm + ".bias");
    spec.final_norm = norm;

    // Every layer needs tensors, so a folder cannot have more layers than tensors: nothing is reserved for a lie.
    auto const layers = static_cast<std::size_t>(size_of(config(), names.layers, max_layers));
    if (layers > folder_.tensors().size())
        fail(names.layers, std::to_string(layers) + " layers, but the files have only " +
                               std::to_string(folder_.tensors().size()) + " tensors");
    layer_spec layer;
    layer.norm = norm;
    layer.placement = how.placement;
    layer.parallel = how.parallel;
    layer.shared_norm = how.shared_norm;
    layer.attention = attention(spec.width, how, names);
    layer.ffn.activation = activation(how, names);
    layer.ffn.gated = how.gated;
    auto const mixture = experts(how, names);
    auto const mixed = mixture.count > 0 ? sparse(layers) : std::vector<bool>(layers);
    for (std::size_t i = 0; i < layers; ++i) {
        auto own = layer;
        if (mixed[i])
            own.ffn.experts = mixture;
        else
            own.ffn.hidden = size_or(names.hidden, 4 * spec.width);
        model.tensors.layers.push_back(name(i, own));
        spec.layers.push_back(std::move(own));
    }
    leave_out_layers_ahead(model, names);
    model.tensors.token_embedding = prefix + std::string(names.token_embedding) + ".weight";
    model.tensors.output_norm = name.norm(output_norm, norm.bias);
    name_output(model, names);
    return model;
}

} // namespace plait
