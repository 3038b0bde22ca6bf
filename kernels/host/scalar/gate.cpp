#include <plait/kernels/host/gate.hpp>
#include <plait/kernels/host/math.hpp>

namespace plait::host::scalar {

namespace {

float activated(activation function, float x) noexcept
{
    switch (function) {
    case activation::silu:
        return silu(x);
    case activation::gelu_tanh:
        return gelu_tanh(x);
    case activation::gelu_erf:
        return gelu_erf(x);
    case activation::relu:
        return 0 > x ? 0.0f : x;
    case activation::relu_squared:
        x = 0 > x ? 0.0f : x;
        return x * x;
    case activation::swiglu_clamped:
        break;
    }
    return x;
}

float swiglu_clamped(gating const& how, float gate, float up) noexcept
{
    float g = how.limit < gate ? how.limit : gate;
    float u = -how.limit > up ? -how.limit : up;
    u = how.limit < u ? how.limit : u;
    return g / (1.0f + exp(-(how.alpha * g))) * (u + 1.0f);
}

} // namespace

void gate(gating const& how, float const* gate, float const* up, float* out)
{
    for (int i = 0; i < 16; ++i)
        out[i] = how.function == activation::swiglu_clamped ? swiglu_clamped(how, gate[i], up[i])
                                                            : activated(how.function, gate[i]) * up[i];
}

void activate(activation function, float const* x, float* out)
{
    for (int i = 0; i < 16; ++i)
        out[i] = activated(function, x[i]);
}

} // namespace plait::host::scalar
