#pragma once

#include <span>
#include <string_view>

namespace plait::host {

/// An instruction set that the kernels have a version for. Every version gives the same bits.
enum class isa {
    scalar, ///< plain C++: the definition of every operation
    avx2,   ///< AVX2, FMA and F16C
    avx512, ///< AVX-512 F, BW, DQ, VL and VNNI
};

/// The best one that this processor and this build have.
isa best_isa() noexcept;

/// All that this processor and this build can run, `scalar` first.
std::span<isa const> available_isas() noexcept;

std::string_view name(isa set) noexcept;

} // namespace plait::host
