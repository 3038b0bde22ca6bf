#pragma once

#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/streams/share.hpp>

#include <limits>
#include <span>
#include <vector>

namespace plait::host {

/// Which two numbers of a head are turned together by angle i.
enum class rope_style : std::uint8_t {
    pairs,  ///< 2i and 2i + 1 (the original; GGUF's llama)
    halves, ///< i and i + dims / 2 (NeoX, Hugging Face)
    /// The first 2 * dims numbers as two heads of `halves`. At position p the first is turned by min(p, e), the second
    /// by p - min(p, e), where e = max(0, chunk.prefix - 1): 2D positions as ChatGLM-6B has them (Du et al.,
    /// arXiv:2103.10360), whose prefix is all of the prompt but its last token.
    two_halves,
};

/// Cosines and sines of `positions` x `dims / 2` angles. Does not own its memory. `dims` 0: no rotation.
struct rope_view {
    std::int32_t dims = 0; ///< leading numbers of a head that are rotated, an even count; the rest pass
    std::int32_t positions = 0;
    float const* cos = nullptr;
    float const* sin = nullptr;
};

/// Owns the angles of a `rope_view`. Computed in F64 and rounded once, so that every instruction set reads the same
/// bits.
class rope_table {
public:
    rope_table() = default;

    /// Angle i at position p is `p * inverse_frequencies[i]`; both functions are multiplied by `magnitude` (the
    /// attention factor of YaRN, arXiv:2309.00071). Throws `errc::invalid_argument` if `positions` is negative.
    rope_table(std::span<double const> inverse_frequencies, std::int64_t positions, double magnitude = 1);

    /// More rows, for sequences whose positions count from there (sequence_chunk::rope_table_offset): angle i of
    /// position p is at row p of them. Throws `errc::invalid_argument` unless there are as many frequencies as in the
    /// first rows.
    void append(std::span<double const> inverse_frequencies, std::int64_t positions, double magnitude = 1);

    /// Valid while the table lives and is not changed or moved from.
    rope_view view() const noexcept;

private:
    std::int32_t dims_ = 0;
    std::int32_t positions_ = 0;
    std::vector<float> cos_;
    std::vector<float> sin_;
};

/// The inverse frequencies base^(-2i / dims), i = 0 … dims / 2 - 1 (Su et al., arXiv:2104.09864).
/// Throws `errc::invalid_argument` unless `dims` is even and not negative and `base` positive.
std::vector<double> rope_frequencies(std::int64_t dims, double base);

/// Normalises (optionally) and rotates queries and keys in place, and writes keys and values to their pages.
///
/// Rotation of (a, b) by (c, s): a' = fma(a, c, b * -s), b' = fma(b, c, a * s).
/// `q8` stores q = x * (127 / max|x|) to the nearest integer, ties to even, and the scale max|x| / 127. A head whose
/// max|x| is below 2^-100 becomes zeros with scale 0, one with an infinity or a NaN zeros with scale NaN.
/// The norm is norm_args', over a head.
struct rope_args {
    float* qkv = nullptr;    ///< rows x (heads + 2 kv_heads) * head_dim: queries, keys, values
    std::int64_t stride = 0; ///< floats from one row to the next
    std::int32_t heads = 0;
    paged_kv kv; ///< kv_heads, head_dim, and where keys and values go
    rope_view rope;
    rope_style style = rope_style::pairs;
    float const* query_norm = nullptr; ///< weights of a norm of each query head (head_dim values), or null: no norm
    float const* key_norm = nullptr;
    norm_kind norm = norm_kind::rms;
    bool norm_per_head_weights = false; ///< each head has its own: heads x head_dim and kv_heads x head_dim values
    float norm_eps = 0;
    std::span<sequence_chunk const> chunks;
    /// The position for the angles of each row, or null: the row's position in its sequence. A position's angles are
    /// row position + chunk.rope_table_offset of the table.
    std::int32_t const* rope_positions = nullptr;
};

/// The rows of the table that turn a row of a chunk; the second is two_halves'.
struct rope_rows {
    std::int64_t first;
    std::int64_t second;
};

static inline rope_rows rope_rows_of(rope_args const& args, sequence_chunk const& chunk, std::int64_t row) noexcept
{
    std::int64_t position =
        args.rope_positions ? args.rope_positions[row] : std::int64_t{chunk.first_position} + row - chunk.first_row;
    std::int64_t first = position;
    if (args.style == rope_style::two_halves) {
        std::int64_t const last = chunk.prefix > 1 ? chunk.prefix - 1 : 0;
        first = position < last ? position : last;
    }
    return {first + chunk.rope_table_offset, position - first + chunk.rope_table_offset};
}

/// The weights of a head's norm, or null. Key heads count on from the query heads.
static inline float const* head_norm(rope_args const& args, std::int64_t head) noexcept
{
    bool const query = head < args.heads;
    auto const* weight = query ? args.query_norm : args.key_norm;
    if (!weight || !args.norm_per_head_weights) return weight;
    return weight + (query ? head : head - args.heads) * args.kv.head_dim;
}

/// What `q8` multiplies a head by, and the scale that it stores.
struct q8_head_range {
    float inverse;
    float scale;
};

static inline q8_head_range q8_range(float largest, bool finite) noexcept
{
    if (!finite) return {0, std::numeric_limits<float>::quiet_NaN()};
    if (largest < 0x1p-100f) return {0, 0};
    return {127.0f / largest, largest / 127.0f};
}

namespace scalar {
void rope_and_store(rope_args const& args, share part);
}
namespace avx2 {
void rope_and_store(rope_args const& args, share part);
}
namespace avx512 {
void rope_and_store(rope_args const& args, share part);
}

} // namespace plait::host
