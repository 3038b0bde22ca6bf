#pragma once

#include <plait/kernels/host/product.hpp>

/// What layers do with their products, sixteen values at a time.
namespace plait::host {

/// The function of a gated layer and its numbers (gated_args).
struct gating {
    activation function = activation::silu;
    float alpha = 1;
    float limit = 0;
};

/// out = act(gate) * up, or swiglu_clamped of both.
using gate_kernel = void (*)(gating const& how, float const* gate, float const* up, float* out);
/// out = act(x); `out` may be `x`. The function is not swiglu_clamped.
using activate_kernel = void (*)(activation function, float const* x, float* out);

namespace scalar {
void gate(gating const& how, float const* gate, float const* up, float* out);
void activate(activation function, float const* x, float* out);
} // namespace scalar
namespace avx2 {
void gate(gating const& how, float const* gate, float const* up, float* out);
void activate(activation function, float const* x, float* out);
} // namespace avx2
namespace avx512 {
void gate(gating const& how, float const* gate, float const* up, float* out);
void activate(activation function, float const* x, float* out);
} // namespace avx512

} // namespace plait::host
