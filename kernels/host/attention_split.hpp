#pragma once

#include <plait/kernels/host/attention.hpp>

namespace plait::host {

/// Part of an attention: some consecutive rows of one chunk, some query heads of one KV head.
struct attention_item {
    sequence_chunk const* chunk = nullptr;
    std::int32_t first = 0; ///< offset in the chunk
    std::int32_t rows = 0;
    std::int32_t kv_head = 0;
    std::int32_t first_head = 0;
    std::int32_t heads = 0;
};

/// Deals the work of an attention out to workers: units of (chunk, tile of rows, query head), in that order, are cut
/// into ranges of equal cost, and a worker's units of one tile and KV head are handed out as one item, so that keys and
/// values are read once for all of them. Late tiles of a prompt see more keys and cost more; a single token is split by
/// head.
class attention_split {
public:
    /// Tiles end at multiples of `tile_rows` positions; an item has at most `item_heads` heads.
    attention_split(attention_args const& args, std::int32_t tile_rows, std::int32_t item_heads, share const& part);

    bool next(attention_item& item);

private:
    struct tile {
        std::int32_t first;
        std::int32_t rows;
        std::int64_t cost;
    };
    tile tile_at(sequence_chunk const& chunk, std::int32_t first) const;

    attention_args const& args_;
    std::int32_t tile_rows_;
    std::int32_t item_heads_;
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
    std::size_t chunk_ = 0;
    std::int32_t first_ = 0; // the tile's offset in its chunk
    std::int32_t head_ = 0;
    std::int64_t passed_ = 0; // cost of all tiles before this one
};

} // namespace plait::host
