#pragma once

#include <plait/kernels/host/gate.hpp>

namespace plait::host::wide {

template<class L>
typename L::vector activated(activation function, typename L::vector x) noexcept
{
    switch (function) {
    case activation::silu:
        return L::silu(x);
    case activation::gelu_tanh:
        return L::gelu_tanh(x);
    case activation::gelu_erf:
        return L::gelu_erf(x);
    case activation::relu:
        return L::max(L::set(0), x);
    case activation::relu_squared:
        x = L::max(L::set(0), x);
        return L::mul(x, x);
    case activation::swiglu_clamped:
        break;
    }
    return x;
}

template<class L>
typename L::vector swiglu_clamped(gating const& how, typename L::vector gate, typename L::vector up) noexcept
{
    auto const limit = L::set(how.limit);
    auto const one = L::set(1);
    auto g = L::min(limit, gate);
    auto u = L::min(limit, L::max(L::negate(limit), up));
    auto sigmoid = L::add(one, L::exp(L::negate(L::mul(L::set(how.alpha), g))));
    return L::mul(L::div(g, sigmoid), L::add(u, one));
}

template<class L>
void gate(gating const& how, float const* gate, float const* up, float* out) noexcept
{
    auto g = L::load(gate);
    auto u = L::load(up);
    L::store(out, how.function == activation::swiglu_clamped ? swiglu_clamped<L>(how, g, u)
                                                             : L::mul(activated<L>(how.function, g), u));
}

} // namespace plait::host::wide
