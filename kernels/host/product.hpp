#pragma once

#include <plait/kernels/host/isa.hpp>
#include <plait/kernels/host/types.hpp>
#include <plait/streams/share.hpp>

/// Matrix products of the host backend, over weights in panels (pack.hpp).
///
/// The order of summation is part of the definition: one F32 accumulator an output, which starts at +0.
/// - Formats with a scale for 32 columns, for each block of 32 columns, ascending: `i`, the exact integer sum of value
///   times activation, each value as it stands before its scale (q4_0: q - 8; iq4_nl: v[q]); with `scale` and `sum`
///   those of the activations, `acc = fma(float(i), d * scale, acc)`; then, where there are minima, `acc = fma(m, sum,
///   acc)`. In q4_k, q5_k and iq4_xs d stands for d * s and m for -(dmin * m), which are exact in F32; in mxfp4 for
///   2^(e - 128).
/// - q2_k, q3_k, q6_k, for each 32 columns, ascending: of their two runs of 16, the exact sums i0 and i1 and, with
///   di = d * si, `u = float(i0) * d0; u = fma(float(i1), d1, u)`. Of q2_k then, with the exact integer sums s0 and s1
///   of the runs' activations and mi = -(dmin * mi), `u = fma(m0, float(s0), u); u = fma(m1, float(s1), u)`. At last
///   `acc = fma(u, scale, acc)`.
/// - f32, f16, bf16, for each column, ascending: `acc = fma(w, x, acc)`.
/// So an output depends on its row of weights and its token only: not on the other tokens of the call, the number of
/// workers or the instruction set.
namespace plait::host {

/// out = residual_scale * residual + scale * (acc + bias), where acc is an output of x * w^T: each operation is rounded
/// to F32, and what is null takes no part. A multiplication by 1 changes nothing.
struct product_args {
    weight_view w;
    activation_view x;           ///< x.rows tokens by w.cols; q8, scales and sums where takes_q8(w.format), else f32
    float* out = nullptr;        ///< token t's w.rows outputs start at out + t * out_stride
    std::int64_t out_stride = 0; ///< in floats, at least w.rows
    float const* residual = nullptr; ///< null, or laid out like `out`; may be `out`
    float const* bias = nullptr;     ///< null, or w.rows values
    float scale = 1;
    float residual_scale = 1;
};

/// What a layer applies to its gate, or to what it makes if it has none (math.hpp).
enum class activation {
    silu,         ///< x * sigmoid(x)
    gelu_tanh,    ///< x * Phi(x) through tanh
    gelu_erf,     ///< x * Phi(x) through erf
    relu,         ///< 0 if 0 > x, else x
    relu_squared, ///< relu(x) * relu(x)
    /// gpt-oss's, of gate and up: with g = min(gate, limit) and u = min(max(up, -limit), limit),
    /// (g * sigmoid(alpha * g)) * (u + 1).
    swiglu_clamped,
};

/// out = act(x * gate^T + gate_bias) * (x * up^T + up_bias), rounded to F32 after each product, sum and function.
struct gated_args {
    weight_view gate_up; ///< panel 2i from the gate, 2i + 1 from the up projection; rows = 2 * out.cols
    activation_view x;   ///< as for a product
    activation_view out; ///< x.rows by hidden features: written as F32 if out.f32, and as quantise_row if out.q8
    activation function = activation::silu;
    float const* gate_bias = nullptr; ///< out.cols values each; both or neither
    float const* up_bias = nullptr;
    float alpha = 1; ///< of swiglu_clamped, as `limit`
    float limit = 0;
};

/// out = act(x * w^T + bias), rounded as in `gated`: a network without a gate.
struct activated_args {
    weight_view w;
    activation_view x;                           ///< as for a product
    float const* bias = nullptr;                 ///< w.rows values, or null
    activation_view out;                         ///< x.rows by w.rows: as for a gated layer
    activation function = activation::gelu_tanh; ///< any but swiglu_clamped
};

struct expert_gated_args; // experts.hpp
struct expert_product_args;

/// The products of one instruction set. Every version gives the same bits.
struct product_table {
    /// Worker `share.index` computes its part of the outputs.
    void (*product)(product_args const& args, share part);
    /// As `product`. A block of 32 outputs is made by one worker, which quantises it. If out.q8, out.cols is a multiple
    /// of 32.
    void (*gated)(gated_args const& args, share part);
    /// As `gated`.
    void (*activated)(activated_args const& args, share part);
    void (*expert_gated)(expert_gated_args const& args, share part); ///< as `gated`
    void (*expert_product)(expert_product_args const& args, share part);
    /// Quantises a row of `cols` values (a multiple of 32) to 8 bits, block by block of 32. With `amax` the greatest
    /// magnitude: scale = amax / 127, q = x * (1 / scale) to the nearest integer, ties to even, within -127 ... 127,
    /// and sum = scale * float(sum of q). A block with amax below 2^-100 becomes zeros with scale 0; one with an
    /// infinity or a NaN becomes zeros with scale and sum NaN, so that every output made from it is NaN. `x` needs no
    /// alignment.
    void (*quantise_row)(float const* x, std::int64_t cols, std::int8_t* q8, float* scales, float* sums);
};

/// The table of an instruction set that `available_isas` lists.
product_table const& products(isa set) noexcept;

} // namespace plait::host
