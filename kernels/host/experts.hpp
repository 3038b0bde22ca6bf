#pragma once

#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/route.hpp>

/// The layers of a mixture of experts, over what `route` has chosen. The experts' panels lie one after the other.
///
/// Each output is made as `product` and `gated` make it, from its row's activations and its expert's weights alone: so
/// it does not depend on the batch. Work is dealt out by expert and panel. Slots whose expert is not here are neither
/// written nor read.
namespace plait::host {

/// Slot s of row r: out[r * used + s] = the gated layer of its expert, of x[r].
struct expert_gated_args {
    expert_choice choice;
    weight_view gate_up;              ///< of the first expert that is here, as for a gated layer
    std::size_t expert_bytes = 0;     ///< from an expert's panels to the next one's, a multiple of 64
    activation_view x;                ///< choice.rows tokens, as for a product
    activation_view out;              ///< rows * used by hidden features: as for a gated layer
    float const* gate_bias = nullptr; ///< experts x out.cols values each; both or neither
    float const* up_bias = nullptr;
    activation function = activation::silu;
    float alpha = 1; ///< of swiglu_clamped, as `limit`
    float limit = 0;
};

/// Slot s of row r: out[r * used + s] = x[r * used + s] * w^T + bias, of its expert.
struct expert_product_args {
    expert_choice choice;
    weight_view w;                ///< of the first expert that is here
    std::size_t expert_bytes = 0; ///< from an expert's panels to the next one's, a multiple of 64
    activation_view x;            ///< rows * used, as for a product
    float const* bias = nullptr;  ///< experts x w.rows values, or null
    float* out = nullptr;         ///< rows * used x w.rows
};

/// to = residual_scale * residual + scale * s, each operation rounded to F32, where s, from 0, is the sum of
/// weight * y over a row's slots, ascending, whose experts are here: the sum of all if they all are, else a rank's
/// summand, then best without a residual.
struct expert_sum_args {
    expert_choice choice;
    float const* y = nullptr; ///< rows * used x cols: what expert_product has written
    std::int64_t cols = 0;
    float const* residual = nullptr; ///< rows x cols, or null; may be `to`
    float* to = nullptr;             ///< rows x cols
    float residual_scale = 1;
    float scale = 1;
};

void expert_sum(expert_sum_args const& args, share part);

} // namespace plait::host
