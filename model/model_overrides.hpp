#pragma once

#include <plait/model/model_spec.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace plait {

/// How a rotation is stretched over a longer context.
enum class rope_stretch : std::uint8_t {
    none,
    linear, ///< all positions are divided by the factor
    yarn,   ///< slow turns are slowed down by the factor, fast ones kept (arXiv:2309.00071)
};

std::string_view name(rope_stretch kind) noexcept;

/// What is to be taken instead of what a model's files say of its rotation. A field without a value changes nothing.
struct model_overrides {
    std::optional<double> rope_base;
    std::optional<rope_stretch> rope_scaling;     ///< instead of all that the files have of it
    std::optional<double> rope_factor;            ///< of linear and yarn, which need it
    std::optional<std::int64_t> original_context; ///< of yarn: positions before stretching; none: the model's context

    bool operator==(model_overrides const&) const = default;
};

/// Changes `spec` as if its files said so. Where layers with a window turn otherwise than those that see all, as in
/// Gemma 3, only the latter change. Linear and yarn make the context at least the factor's multiple of the one before.
/// Changes the fingerprint. Errors, naming the field: errc::invalid_argument for a base that is not above 1, a factor
/// or a context that is not positive and finite or too large, and for a field without the one that it belongs to;
/// errc::unsupported for a model that rotates nothing, and for another base alone where the model's own scaling was
/// made for its base.
void apply(model_overrides const& overrides, model_spec& spec);

} // namespace plait
