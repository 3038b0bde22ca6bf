#include <plait/model/model_spec.hpp>

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
    return norm.kind == norm_kind::none ? out : out + " " + number(norm.epsilon);
}

std::string text(rope_spec const& rope)
{
    if (rope.style == rope_style::none) return "none";
    std::string out =
        std::string(name(rope.style)) + " on " + std::to_string(rope.dims) + ", base " + number(rope.base);
    if (rope.linear_scale != 1.0f) out += ", positions / " + number(rope.linear_scale);
    if (!rope.factors.empty()) out += ", " + std::to_string(rope.factors.size()) + " frequency factors";
    return out;
}

std::string text(layer_spec const& layer)
{
    attention_spec const& a = layer.attention;
    std::string out = std::string(name(layer.placement)) + " " + text(layer.norm) + "; attention " +
                      std::to_string(a.heads) + " heads over " + std::to_string(a.kv_heads) + " of " +
                      std::to_string(a.head_dim) + ", scale " + number(a.scale);
    if (a.window != 0) out += ", window " + std::to_string(a.window);
    if (a.soft_cap != 0) out += ", soft cap " + number(a.soft_cap);
    out += "; rope " + text(a.rope) + "; ffn " + std::to_string(layer.ffn.hidden) + " " +
           std::string(name(layer.ffn.activation));
    return out + (layer.ffn.gated ? " gated" : "");
}

// The largest size of one dimension. Products of two of them stay exact in 64 bits.
constexpr std::int64_t max_size = std::int64_t{1} << 31;
// F32 holds every position below this exactly, and RoPE multiplies positions in F32.
constexpr std::int64_t max_context = std::int64_t{1} << 24;

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
        if (!std::isfinite(a.soft_cap) || a.soft_cap < 0)
            fail(field + " soft cap", number(a.soft_cap) + " is negative or not finite");
        rope(field + " rope", a.rope, a.head_dim);
        size(field + " ffn hidden", layer.ffn.hidden);
    }

    [[noreturn]] void fail(std::string const& field, std::string const& what) const
    {
        throw error(code_, std::string(where_) + ": " + field + ": " + what);
    }

private:
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
    }
    return "unknown";
}

std::string to_string(model_spec const& spec)
{
    std::string out = spec.architecture + (spec.name.empty() ? "" : " \"" + spec.name + "\"") + "\n";
    out += "width " + std::to_string(spec.width) + ", vocabulary " + std::to_string(spec.vocabulary) + ", context " +
           std::to_string(spec.context) + ", output " + (spec.tied_output ? "tied" : "its own");
    if (spec.embedding_scale != 1.0f) out += ", embedding scale " + number(spec.embedding_scale);
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
    if (spec.layers.empty()) checks.fail("layers", "there are none");
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
        checks.layer("layer " + std::to_string(i), spec.layers[i]);
    checks.norm("final norm", spec.final_norm);
}

} // namespace plait
