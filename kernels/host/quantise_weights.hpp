#pragma once

#include <plait/kernels/host/types.hpp>

#include <cstddef>

namespace plait::host {

/// True where quantise_weights can make a format: q4_1 and q8_0.
constexpr bool can_quantise_to(weight_format format) noexcept
{
    return format == weight_format::q4_1 || format == weight_format::q8_0;
}

/// Writes a row of `cols` weights as blocks of a GGUF file, file_row_bytes(format, cols) bytes, with the same bytes as
/// the `gguf` package and ggml's reference. For each block of 32 columns, everything in F32:
/// - q8_0: d = greatest magnitude / 127, q = x * (1 / d) to the nearest integer, halves away from zero;
/// - q4_1: m = least, d = (greatest - m) / 15, q = floor((x - m) * (1 / d) + 0.5), at most 15;
/// d and m are then rounded to F16. Where 1 / d is no finite number all q are 0; a block with an infinity or a NaN
/// dequantises to NaN. Throws `errc::invalid_argument` for another format or a `cols` that is no multiple of 32.
void quantise_weights(weight_format format, std::int64_t cols, float const* x, std::byte* file_row);

} // namespace plait::host
