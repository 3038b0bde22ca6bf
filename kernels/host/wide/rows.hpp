#pragma once

#include <cstdint>
#include <cstring>

/// Kernels over sixteen lanes. `L` is the lanes class of an instruction set; each file in avx2/ and avx512/
/// instantiates them with its own, so that no code is shared between files compiled for different instruction sets.
namespace plait::host::wide {

/// Up to 16 numbers; the lanes beyond `count` are 0.
template<class L>
typename L::vector load_part(float const* p, std::int64_t count) noexcept
{
    if (count >= 16) return L::load(p);
    float part[16] = {};
    std::memcpy(part, p, static_cast<std::size_t>(count) * sizeof(float));
    return L::load(part);
}

template<class L>
void store_part(float* p, std::int64_t count, typename L::vector v) noexcept
{
    if (count >= 16) {
        L::store(p, v);
        return;
    }
    float part[16];
    L::store(part, v);
    std::memcpy(p, part, static_cast<std::size_t>(count) * sizeof(float));
}

/// The sum of squares as `rms_norm` defines it. Adding the square of a 0 changes no bit of a sum that isn't negative.
template<class L>
float square_sum(float const* x, std::int64_t cols) noexcept
{
    auto sum = L::set(0);
    for (std::int64_t c = 0; c < cols; c += 16) {
        auto v = load_part<L>(x + c, cols - c);
        sum = L::fma(v, v, sum);
    }
    return L::sum(sum);
}

/// out = (x * factor) * weight; `out` may be `x`.
template<class L>
void scale_row(float const* x, float factor, float const* weight, std::int64_t cols, float* out) noexcept
{
    auto const f = L::set(factor);
    for (std::int64_t c = 0; c < cols; c += 16)
        store_part<L>(out + c, cols - c,
                      L::mul(L::mul(load_part<L>(x + c, cols - c), f), load_part<L>(weight + c, cols - c)));
}

} // namespace plait::host::wide
