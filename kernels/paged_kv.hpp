#pragma once

#include <cstddef>
#include <cstdint>

namespace plait {

/// How keys and values are stored.
enum class kv_type : std::uint8_t {
    f32,
    f16,
    q8, ///< int8 with one F32 scale per token and KV head, one for the key and one for the value
};

/// Tokens of a page.
inline constexpr std::int64_t page_tokens = 16;

/// Pages that `tokens` tokens take.
constexpr std::int64_t pages_of(std::int64_t tokens) noexcept
{
    return (tokens + page_tokens - 1) / page_tokens;
}

/// Where things are inside a page: `kv_heads` parts of `head_bytes` each. A part holds the keys transposed, as
/// [head_dim][16 tokens], so that sixteen scores are computed at once; the values as [16 tokens][head_dim]; and for
/// `q8` 16 key scales and 16 value scales. Every offset is a multiple of 64 bytes.
struct page_layout {
    std::size_t values_offset = 0;
    std::size_t scales_offset = 0;
    std::size_t head_bytes = 0;
};

constexpr std::size_t element_bytes(kv_type type) noexcept
{
    return type == kv_type::f32 ? 4 : type == kv_type::f16 ? 2 : 1;
}

constexpr page_layout layout_of(kv_type type, std::int64_t head_dim) noexcept
{
    auto bytes = static_cast<std::size_t>(head_dim * page_tokens) * element_bytes(type);
    auto part = (bytes + 63) / 64 * 64;
    auto scales = type == kv_type::q8 ? 2 * static_cast<std::size_t>(page_tokens) * sizeof(float) : 0;
    return {part, 2 * part, 2 * part + scales};
}

/// Bytes of one layer's page: a multiple of 64.
constexpr std::size_t page_bytes(kv_type type, std::int64_t kv_heads, std::int64_t head_dim) noexcept
{
    return static_cast<std::size_t>(kv_heads) * layout_of(type, head_dim).head_bytes;
}

/// The pages of one layer. Page p starts at `pages + p * page_stride`, 64-byte aligned. Does not own its memory.
struct paged_kv {
    kv_type type = kv_type::f16;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;
    std::byte* pages = nullptr;
    std::size_t page_stride = 0;
};

/// Consecutive tokens of one sequence in a batch: rows `first_row` up to `first_row + rows` of the step are the
/// positions from `first_position` on. Keys and values of position i are in slot i % 16 of page `pages[i / 16]`.
struct sequence_chunk {
    std::int32_t first_row = 0;
    std::int32_t rows = 0;
    std::int32_t first_position = 0;
    std::int32_t const* pages = nullptr; ///< not owned; covers every position up to the chunk's last
    /// Positions below it are seen by every row, whatever its own position (prefix LM: Raffel et al.,
    /// arXiv:1910.10683). Keys must be stored before they are seen: at most first_position + rows.
    std::int32_t prefix = 0;
    std::int32_t rope_table_offset = 0; ///< rows of the table of angles before those of this sequence
};

} // namespace plait
