#pragma once

#include <plait/model/model_spec.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plait {

/// Whether tensors are there.
enum class presence : std::uint8_t {
    absent,
    optional, ///< in all layers or in none, as the first one shows
    required,
};

/// What all models of a family have in common, as far as their files do not say it.
struct family_layout {
    norm_kind norm = norm_kind::rms;
    presence norm_bias = presence::absent;
    norm_placement placement = norm_placement::pre;
    bool parallel = false;    ///< both sublayers read the stream as it was
    bool shared_norm = false; ///< of a parallel layer
    rope_style rope = rope_style::halves;
    double rotated = 1;                                 ///< part of a head that is rotated, where a config does not say
    activation_kind activation = activation_kind::silu; ///< where the file does not say
    bool gated = true;
    bool fused_qkv = false;     ///< one matrix: queries, keys, values
    bool fused_gate_up = false; ///< one matrix: gate, up
    presence qkv_bias = presence::absent;
    presence output_bias = presence::absent;
    presence ffn_bias = presence::absent;
    presence head_norms = presence::absent;
    head_norm head_norms_over = head_norm::head;
    presence sinks = presence::absent;
    std::optional<routing> scoring{}; ///< of mixtures of experts; nothing where the family has none
    bool normalised = false;          ///< the weights of the chosen, where the file does not say
    presence router_bias = presence::absent;
    presence selection_bias = presence::absent;
    presence expert_bias = presence::absent;
};

/// `how` for files whose queries and keys were permuted when they were converted: pairs are rotated.
constexpr family_layout permuted(family_layout how) noexcept
{
    how.rope = rope_style::pairs;
    return how;
}

/// Whether `layer` is the last of its `interval`, as patterns of windows and rotations count.
constexpr bool ends_interval(std::size_t layer, std::int64_t interval) noexcept
{
    return (static_cast<std::int64_t>(layer) + 1) % interval == 0;
}

} // namespace plait
