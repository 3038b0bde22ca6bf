#include <plait/model/model_overrides.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/families/limits.hpp>
#include <plait/model/families/rope_scaling.hpp>
#include <plait/model/files/fingerprint.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>

namespace plait {
namespace {

/// Beyond it F32 has no room for the angles' divisors.
constexpr double largest_number = 1e30;

[[noreturn]] void refuse(char const* field, std::string const& what, errc code = errc::invalid_argument)
{
    throw error(code, std::string(field) + ": " + what);
}

void require_above(char const* field, std::optional<double> value, double least)
{
    if (value && !(*value > least && *value <= largest_number))
        refuse(field, std::to_string(*value) + " is not above " + (least == 0 ? "0" : "1") + " and finite");
}

void check(model_overrides const& o)
{
    require_above("rope_base", o.rope_base, 1);
    require_above("rope_factor", o.rope_factor, 0);
    if (o.original_context && (*o.original_context < 1 || *o.original_context > max_context))
        refuse("original_context",
               std::to_string(*o.original_context) + " is not between 1 and " + std::to_string(max_context));
    bool const stretches = o.rope_scaling && *o.rope_scaling != rope_stretch::none;
    if (stretches && !o.rope_factor)
        refuse("rope_factor", "missing; " + std::string(name(*o.rope_scaling)) + " scaling needs one");
    if (o.rope_factor && !stretches) refuse("rope_factor", "belongs to linear or yarn scaling");
    if (o.original_context && o.rope_scaling != rope_stretch::yarn)
        refuse("original_context", "belongs to yarn scaling");
}

/// The rotation of the layers that see all, or of the only ones that turn; null where nothing does.
rope_spec const* rotation_of(model_spec const& spec)
{
    rope_spec const* windowed = nullptr;
    for (auto const& layer : spec.layers) {
        auto const& a = layer.attention;
        if (a.rope.style == rope_style::none) continue;
        if (a.window == 0) return &a.rope;
        if (windowed == nullptr) windowed = &a.rope;
    }
    return windowed;
}

bool is_scaled(rope_spec const& rope)
{
    return !rope.factors.empty() || !rope.long_factors.empty() || rope.magnitude != 1;
}

rope_spec changed(rope_spec rope, model_overrides const& o, model_spec const& spec)
{
    if (o.rope_base) rope.base = static_cast<float>(*o.rope_base);
    if (!o.rope_scaling) return rope;
    rope.linear_scale = 1;
    rope.factors.clear();
    rope.long_factors.clear();
    rope.short_context = 0;
    rope.magnitude = 1;
    if (o.rope_scaling == rope_stretch::linear) rope.linear_scale = static_cast<float>(*o.rope_factor);
    if (o.rope_scaling == rope_stretch::yarn) {
        yarn_scaling how;
        how.factor = *o.rope_factor;
        how.original_context = o.original_context.value_or(spec.context);
        // As in the headers of OpenAI's models.
        how.truncate = spec.architecture != "gpt-oss" && spec.architecture != "gpt_oss";
        rope.factors = yarn_factors(rope.dims, rope.base, how);
        rope.magnitude = static_cast<float>(yarn_magnitude(how.factor));
    }
    return rope;
}

std::int64_t stretched(std::int64_t context, model_overrides const& o)
{
    auto const before = static_cast<double>(o.original_context.value_or(context));
    auto const after = std::min(before * *o.rope_factor, static_cast<double>(max_context));
    return std::max(context, static_cast<std::int64_t>(after));
}

} // namespace

std::string_view name(rope_stretch kind) noexcept
{
    switch (kind) {
    case rope_stretch::none:
        return "none";
    case rope_stretch::linear:
        return "linear";
    case rope_stretch::yarn:
        return "yarn";
    }
    return "?";
}

void apply(model_overrides const& overrides, model_spec& spec)
{
    check(overrides);
    if (overrides == model_overrides()) return;
    auto const* const found = rotation_of(spec);
    char const* const field = overrides.rope_base ? "rope_base" : "rope_scaling";
    if (found == nullptr)
        refuse(field, spec.architecture + " rotates nothing: it has other positions", errc::unsupported);
    auto const before = *found;
    if (!overrides.rope_scaling && is_scaled(before))
        refuse("rope_base", "the model's scaling was made for its own base; rope_scaling says what is to be instead",
               errc::unsupported);
    auto const after = changed(before, overrides, spec);
    for (auto& layer : spec.layers)
        if (layer.attention.rope == before) layer.attention.rope = after;
    if (overrides.rope_factor) spec.context = stretched(spec.context, overrides);
    std::array const said{overrides.rope_base.value_or(0),
                          overrides.rope_scaling ? 1.0 + static_cast<double>(*overrides.rope_scaling) : 0.0,
                          overrides.rope_factor.value_or(0),
                          static_cast<double>(overrides.original_context.value_or(0))};
    spec.fingerprint = mix(spec.fingerprint, std::as_bytes(std::span(said)));
}

} // namespace plait
