#pragma once

#include <plait/kernels/host/types.hpp>

#include <cstdint>

namespace plait {

/// In what arithmetic a model runs.
enum class numerics : std::uint8_t {
    native, ///< weights as the file has them; activations in 8 bit where the weights are quantised
    f32,    ///< weights dequantised, activations in F32: the reference, at four to eight times the memory
};

/// How a matrix of a file is kept.
constexpr weight_format kept_as(weight_format file, numerics mode) noexcept
{
    return mode == numerics::f32 ? weight_format::f32 : file;
}

} // namespace plait
