#pragma once

#include <plait/kernels/host/types.hpp>

/// Weights in the order in which the host kernels read them.
///
/// A **panel** holds 16 rows, its columns ascending, so that one vector register holds one number of each row:
///
/// | format | for each | bytes | content |
/// |---|---|---|---|
/// | f32 | column | 64 | 16 x F32 |
/// | f16, bf16 | column | 32 | 16 x 16 bits |
/// | q4_1 | block of 32 columns | 320 | 4 x 16 x 4 bytes of values, 16 x F16 scale d, 16 x F16 minimum m |
/// | q4_0 | block of 32 columns | 288 | 4 x 16 x 4 bytes of values, 16 x F16 scale d |
/// | q8_0 | block of 32 columns | 544 | 8 x 16 x 4 bytes of values, 16 x F16 scale d |
///
/// The four bytes of a row in group j of a 4-bit block hold columns 8j ... 8j+3 in their low halves and 8j+4 ... 8j+7
/// in their high ones. An 8-bit value is stored plus 128, unsigned: multiply instructions take one unsigned operand.
/// Rows that fill up the last panel are zero.
namespace plait::host {

/// Where the rows of a matrix go when several matrices share one set of panels. Panel i of the matrix becomes panel
/// `i * step + offset`: {2, 0} for a gate and {2, 1} for its up projection give the alternation that `gated` reads.
struct interleave {
    std::int64_t step = 1;
    std::int64_t offset = 0;
};

/// Bytes of one row in a GGUF file. Throws `errc::invalid_argument` if a block format's `cols` is no multiple of 32.
std::size_t file_row_bytes(weight_format format, std::int64_t cols);

/// Bytes of one panel of 16 rows. Throws as `file_row_bytes`.
std::size_t panel_bytes(weight_format format, std::int64_t cols);

/// Bytes of a whole matrix in panels; a gate and an up projection of `rows` rows each take twice as much.
/// Throws as `file_row_bytes`.
std::size_t packed_bytes(weight_format format, std::int64_t rows, std::int64_t cols);

/// Writes `rows` rows of a row-major GGUF matrix to rows `first_row` and up of `panels`, and zeroes the rest of the
/// last panel that it touches: matrices that share a panel are packed in ascending order, and threads may pack whole
/// panels at the same time. `packed_format` is the file's, or f32: then each weight is exactly what the reference
/// dequantises to (q4_1: `d * q + m`, each operation rounded to F32). `file_rows` needs no alignment. Throws
/// `errc::invalid_argument` for another `packed_format` and as `file_row_bytes`.
void pack_rows(weight_format file_format, weight_format packed_format, std::int64_t rows, std::int64_t cols,
               std::byte const* file_rows, std::byte* panels, std::int64_t first_row, interleave place = {});

/// Dequantises one row to `out` (`weights.cols` values), exactly as the reference does: an embedding look-up.
void unpack_row(weight_view const& weights, std::int64_t row, float* out);

} // namespace plait::host
