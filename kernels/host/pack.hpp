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
/// | q4_0, iq4_nl | block of 32 columns | 288 | values, d |
/// | q4_1 | block of 32 columns | 320 | values, d, m |
/// | q5_0, q5_1 | block of 32 columns | 352, 384 | values, d, of q5_1 m |
/// | q8_0 | block of 32 columns | 544 | values, d |
/// | mxfp4 | block of 32 columns | 272 | values, 16 exponents |
/// | q2_k | block of 256 columns | 1344 | values, 16 x 16 scales (low halves) and minima (high ones), d, dmin |
/// | q3_k, q6_k | block of 256 columns | 1824, 3360 | values, 16 x 16 scales, d |
/// | q4_k, q5_k | block of 256 columns | 2368, 2880 | values, 8 x 16 scales, 8 x 16 minima, d, dmin |
/// | iq4_xs | block of 256 columns | 2208 | values, 8 x 16 scales, d |
///
/// d, m and dmin are 16 x F16; a scale, a minimum or an exponent is a byte, sixteen rows side by side.
/// The values of 32 columns take a line of 64 bytes for each of their bits: 16 x 4 bytes, so that a row's four bytes
/// belong to the same four columns of a group j. First come the low bits of a value, then the high ones:
///
/// | bits | lines | a line |
/// |---|---|---|
/// | 8 (q8_0) | 8 | group j |
/// | 4 (all others but q2_k and q3_k) | 4 | groups 2j in the low halves of its bytes and 2j + 1 in the high ones |
/// | 2 (q2_k, q3_k; high: q6_k) | 2 | groups 4j ... 4j + 3, from the low bits up |
/// | 1 (high: q3_k, q5_0, q5_1, q5_k) | 1 | all eight groups, from the low bit up |
///
/// An 8-bit value is stored plus 128, unsigned: multiply instructions take one unsigned operand. Packed scales of the
/// file are bytes here, the signed ones with their offset off. Rows that fill up the last panel are zero.
namespace plait::host {

/// Where the rows of a matrix go when several matrices share one set of panels. Panel i of the matrix becomes panel
/// `i * step + offset`: {2, 0} for a gate and {2, 1} for its up projection give the alternation that `gated` reads.
struct interleave {
    std::int64_t step = 1;
    std::int64_t offset = 0;
};

/// Bytes of one row in a GGUF file. Throws `errc::invalid_argument` if `cols` is no multiple of
/// columns_of_block(format).
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
