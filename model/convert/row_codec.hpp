#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/model/files/ggml_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plait {

/// Rows of a matrix as a file has them, to F32 and back. Keeps memory between calls; a copy per thread.
class row_codec {
public:
    /// The values of `rows` rows of `cols` columns, exactly as the reference dequantises them: out[rows × cols].
    void decode(weight_format from, std::int64_t rows, std::int64_t cols, std::byte const* stored, float* out);

    /// True where encode() makes `to`.
    static bool can_encode(ggml_type to) noexcept;
    /// Bytes of a row of a type that can be encoded.
    static std::size_t row_bytes(ggml_type to, std::int64_t cols) noexcept;
    /// Writes `values`, whole rows, as `to`: nearest, ties to even, or as ggml's reference quantises.
    static void encode(ggml_type to, std::int64_t cols, std::span<float const> values, std::byte* out);

private:
    std::vector<std::byte> panel_;
};

} // namespace plait
