#include <plait/model/model_spec.hpp>

#include <plait/model/families/limits.hpp>

#include <cmath>
#include <cstdio>

namespace plait {
namespace {

std::string number(double value)
{
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", value);
    return buffer;
}

std::string text(norm_spec const& norm)
{
    std::string out(name(norm.kind));
    if (norm.kind == norm_kind::none) return out;
    return out + " " + number(norm.epsilon) + (norm.bias ? " with bias" : "");
}

std::string text(rope_spec const& rope)
{
    if (rope.style == rope_style::none) return "none";
    std::string out =
        std::string(name(rope.style)) + " on " + std::to_string(rope.dims) + ", base " + number(rope.base);
    if (rope.linear_scale != 1.0f) out += ", positions / " + number(rope.linear_scale);
    if (!rope.factors.empty()) out += ", " + std::to_string(rope.factors.size()) + " frequency factors";
    if (!rope.long_factors.empty())
        out += ", others for more than " + std::to_string(rope.short_context) + " positions";
    if (rope.magnitude != 1.0f) out += ", magnitude " + number(rope.magnitude);
    return out;
}

std::string text(attention_spec const& a)
{
    std::string out = "attention " + std::to_string(a.heads) + " heads over " + std::to_string(a.kv_heads) + " of " +
                      std::to_string(a.head_dim) + ", scale " + number(a.scale);
    if (a.query_key_norm != head_norm::none)
        out += ", queries and keys normed over " + std::string(name(a.query_key_norm)) + " by " + text(a.norm);
    if (a.window != 0) out += ", window " + std::to_string(a.window);
    if (a.soft_cap != 0) out += ", soft cap " + number(a.soft_cap);
    if (a.sinks) out += ", sinks";
    if (a.query_key_value_bias) out += ", QKV bias";
    if (a.output_bias) out += ", output bias";
    return out + "; rope " + text(a.rope);
}

std::string text(experts_spec const& e)
{
    std::string out = std::to_string(e.used) + " of " + std::to_string(e.count) + " experts of " +
                      std::to_string(e.hidden) + " by " + std::string(name(e.scoring));
    if (e.normalised) out += ", normalised";
    if (e.scale != 1.0f) out += ", scale " + number(e.scale);
    if (e.groups > 1) out += ", from " + std::to_string(e.groups_used) + " of " + std::to_string(e.groups) + " groups";
    if (e.router_bias) out += ", router bias";
    if (e.selection_bias) out += ", selection bias";
    if (e.bias) out += ", bias";
    if (e.shared_hidden > 0) out += ", a shared one of " + std::to_string(e.shared_hidden);
    return out;
}

std::string text(ffn_spec const& ffn)
{
    std::string out = "ffn " + (ffn.experts.count > 0 ? text(ffn.experts) : std::to_string(ffn.hidden));
    out += " " + std::string(name(ffn.activation));
    if (ffn.activation == activation_kind::swiglu_clamped)
        out += " (alpha " + number(ffn.alpha) + ", limit " + number(ffn.limit) + ")";
    if (ffn.gated) out += " gated";
    return out + (ffn.bias ? " with bias" : "");
}

std::string text(layer_spec const& layer)
{
    std::string out = std::string(name(layer.placement)) + " " + text(layer.norm);
    if (layer.parallel) out += layer.shared_norm ? ", parallel with one norm" : ", parallel";
    if (layer.residual_scale != 1.0f) out += ", residual scale " + number(layer.residual_scale);
    if (layer.output_scale != 1.0f) out += ", output scale " + number(layer.output_scale);
    return out + "; " + text(layer.attention) + "; " + text(layer.ffn);
}

// The largest size of one dimension. Products of two of them stay exact in 64 bits.
constexpr std::int64_t max_size = std::int64_t{1} << 31;

class checker {
public:
    checker(errc code, std::string_view where)
        : code_(code)
        , where_(where)
    {
    }

    void size(std::string const& field, std::int64_t value, std::int64_t largest = max_size) const
    {
        if (value < 1 || value > largest)
            fail(field, std::to_string(value) + " is not between 1 and " + std::to_string(largest));
    }

    void positive(std::string const& field, float value) const
    {
        if (!std::isfinite(value) || value <= 0) fail(field, number(value) + " is not a positive finite number");
    }

    void norm(std::string const& field, norm_spec const& norm) const
    {
        if (norm.kind == norm_kind::none) return;
        positive(field + " epsilon", norm.epsilon);
        if (norm.epsilon >= 1) fail(field + " epsilon", number(norm.epsilon) + " is not below 1");
    }

    void layer(std::string const& field, layer_spec const& layer) const
    {
        norm(field + " norm", layer.norm);
        attention_spec const& a = layer.attention;
        size(field + " heads", a.heads);
        size(field + " KV heads", a.kv_heads);
        size(field + " head dim", a.head_dim);
        size(field + " query width", a.heads * a.head_dim);
        if (a.kv_heads > a.heads || a.heads % a.kv_heads != 0)
            fail(field + " KV heads",
                 std::to_string(a.kv_heads) + " do not divide the " + std::to_string(a.heads) + " heads");
        positive(field + " attention scale", a.scale);
        if (a.window < 0) fail(field + " window", std::to_string(a.window) + " is negative");
        not_negative(field + " soft cap", a.soft_cap);
        rope(field + " rope", a.rope, a.head_dim);
        if (a.query_key_norm != head_norm::none) norm(field + " query and key norm", a.norm);
        positive(field + " residual scale", layer.residual_scale);
        positive(field + " output scale", layer.output_scale);
        if (layer.parallel && layer.placement != norm_placement::pre)
            fail(field + " norm placement", std::string(name(layer.placement)) + " of a parallel layer");
        if (layer.shared_norm && !layer.parallel) fail(field + " norm", "shared by sublayers that are not parallel");
        if (layer.ffn.activation == activation_kind::swiglu_clamped) {
            positive(field + " ffn alpha", layer.ffn.alpha);
            positive(field + " ffn limit", layer.ffn.limit);
        }
        if (layer.ffn.experts.count == 0)
            size(field + " ffn hidden", layer.ffn.hidden);
        else
            experts(field + " experts", layer.ffn);
    }

    [[noreturn]] void fail(std::string const& field, std::string const& what) const
    {
        throw error(code_, std::string(where_) + ": " + field + ": " + what);
    }

    void not_negative(std::string const& field, float value) const
    {
        if (!std::isfinite(value) || value < 0) fail(field, number(value) + " is negative or not finite");
    }

private:
    void experts(std::string const& field, ffn_spec const& ffn) const
    {
        auto const& e = ffn.experts;
        size(field, e.count, max_experts);
        size(field + " used", e.used, e.count);
        size(field + " hidden", e.hidden);
        positive(field + " scale", e.scale);
        if (!ffn.gated) fail(field, "of networks without a gate");
        size(field + " groups", e.groups, e.count);
        size(field + " groups used", e.groups_used, e.groups);
        if (e.count % e.groups != 0)
            fail(field + " groups",
                 std::to_string(e.groups) + " do not divide the " + std::to_string(e.count) + " experts");
        if (e.used > e.count / e.groups * e.groups_used)
            fail(field + " used", std::to_string(e.used) + " are more than the chosen groups have");
        if (e.shared_hidden < 0) fail(field + " shared hidden", std::to_string(e.shared_hidden) + " is negative");
    }

    void rope(std::string const& field, rope_spec const& rope, std::int64_t head_dim) const
    {
        if (rope.style == rope_style::none) return;
        if (rope.dims < 2 || rope.dims % 2 != 0 || rope.dims > head_dim)
            fail(field + " dims",
                 std::to_string(rope.dims) + " is not an even number from 2 to the head's " + std::to_string(head_dim));
        positive(field + " base", rope.base);
        if (rope.base <= 1) fail(field + " base", number(rope.base) + " is not above 1");
        positive(field + " linear scale", rope.linear_scale);
        if (!rope.factors.empty() && rope.factors.size() != static_cast<std::size_t>(rope.dims / 2))
            fail(field + " factors", std::to_string(rope.factors.size()) + " of them for " +
                                         std::to_string(rope.dims / 2) + " frequencies");
        for (float const factor : rope.factors)
            positive(field + " factor", factor);
        if (!rope.long_factors.empty() && rope.long_factors.size() != static_cast<std::size_t>(rope.dims / 2))
            fail(field + " long factors", std::to_string(rope.long_factors.size()) + " of them for " +
                                              std::to_string(rope.dims / 2) + " frequencies");
        for (float const factor : rope.long_factors)
            positive(field + " long factor", factor);
        if (!rope.long_factors.empty()) size(field + " short context", rope.short_context, max_context);
        positive(field + " magnitude", rope.magnitude);
        if (rope.style == rope_style::two_halves && (rope.dims != head_dim || rope.dims % 4 != 0))
            fail(field + " dims",
                 std::to_string(rope.dims) + " of two halves, whose head has " + std::to_string(head_dim));
    }

    errc code_;
    std::string_view where_;
};

} // namespace

std::string_view name(norm_kind kind) noexcept
{
    switch (kind) {
    case norm_kind::none:
        return "none";
    case norm_kind::rms:
        return "rms";
    case norm_kind::layer:
        return "layer";
    }
    return "unknown";
}

std::string_view name(norm_placement placement) noexcept
{
    switch (placement) {
    case norm_placement::pre:
        return "pre";
    case norm_placement::post_add:
        return "post-add";
    case norm_placement::sandwich:
        return "sandwich";
    case norm_placement::output:
        return "output";
    case norm_placement::input:
        return "input";
    }
    return "unknown";
}

std::string_view name(rope_style style) noexcept
{
    switch (style) {
    case rope_style::none:
        return "none";
    case rope_style::pairs:
        return "pairs";
    case rope_style::halves:
        return "halves";
    case rope_style::two_halves:
        return "two halves";
    }
    return "unknown";
}

std::string_view name(activation_kind kind) noexcept
{
    switch (kind) {
    case activation_kind::silu:
        return "silu";
    case activation_kind::gelu_tanh:
        return "gelu-tanh";
    case activation_kind::gelu_erf:
        return "gelu";
    case activation_kind::relu:
        return "relu";
    case activation_kind::relu_squared:
        return "relu-squared";
    case activation_kind::swiglu_clamped:
        return "swiglu-clamped";
    }
    return "unknown";
}

std::string_view name(head_norm kind) noexcept
{
    switch (kind) {
    case head_norm::none:
        return "none";
    case head_norm::head:
        return "a head";
    case head_norm::each_head:
        return "each head";
    case head_norm::all_heads:
        return "all heads";
    }
    return "unknown";
}

std::string_view name(routing kind) noexcept
{
    switch (kind) {
    case routing::softmax:
        return "softmax";
    case routing::softmax_of_chosen:
        return "softmax of the chosen";
    case routing::sigmoid:
        return "sigmoid";
    }
    return "unknown";
}

std::string to_string(model_spec const& spec)
{
    std::string out = spec.architecture + (spec.name.empty() ? "" : " \"" + spec.name + "\"") + "\n";
    out += "width " + std::to_string(spec.width) + ", vocabulary " + std::to_string(spec.vocabulary) + ", context " +
           std::to_string(spec.context) + ", output " + (spec.tied_output ? "tied" : "its own");
    if (spec.embedding_scale != 1.0f) out += ", embedding scale " + number(spec.embedding_scale);
    if (spec.learned_positions > 0) out += ", " + std::to_string(spec.learned_positions) + " learned positions";
    if (spec.prefix) out += ", a prompt sees all of itself";
    if (spec.logit_scale != 1.0f) out += ", logit scale " + number(spec.logit_scale);
    if (spec.logit_cap != 0) out += ", logit cap " + number(spec.logit_cap);
    out += "\n";
    for (std::size_t first = 0, last = 0; first < spec.layers.size(); first = last) {
        while (last < spec.layers.size() && spec.layers[last] == spec.layers[first])
            ++last;
        out += last - first == 1 ? "layer " : "layers ";
        out += std::to_string(first) + (last - first == 1 ? "" : "-" + std::to_string(last - 1));
        out += ": " + text(spec.layers[first]) + "\n";
    }
    char fingerprint[17];
    std::snprintf(fingerprint, sizeof fingerprint, "%016llx", static_cast<unsigned long long>(spec.fingerprint));
    return out + "final norm " + text(spec.final_norm) + ", fingerprint " + fingerprint + "\n";
}

void check(model_spec const& spec, errc code, std::string_view where)
{
    checker const checks(code, where);
    checks.size("width", spec.width);
    checks.size("vocabulary", spec.vocabulary);
    checks.size("context", spec.context, max_context);
    checks.positive("embedding scale", spec.embedding_scale);
    checks.positive("logit scale", spec.logit_scale);
    checks.not_negative("logit cap", spec.logit_cap);
    if (spec.learned_positions != 0) {
        checks.size("learned positions", spec.learned_positions, max_context);
        if (spec.learned_positions < spec.context)
            checks.fail("learned positions",
                        std::to_string(spec.learned_positions) + " for a context of " + std::to_string(spec.context));
    }
    if (spec.layers.empty()) checks.fail("layers", "there are none");
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
        checks.layer("layer " + std::to_string(i), spec.layers[i]);
    checks.norm("final norm", spec.final_norm);
}

} // namespace plait
