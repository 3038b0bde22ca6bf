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

} // namespace plait::host::wide
