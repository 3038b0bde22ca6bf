#include <plait/kernels/host/attention_split.hpp>

#include <algorithm>

namespace plait::host {

attention_split::attention_split(attention_args const& args, std::int32_t tile_rows, std::int32_t item_heads,
                                 share const& part)
    : args_(args)
    , tile_rows_(tile_rows)
    , item_heads_(item_heads)
{
    std::int64_t total = 0;
    for (auto const& chunk : args.chunks)
        for (std::int32_t first = 0; first < chunk.rows;) {
            auto t = tile_at(chunk, first);
            total += t.cost * args.heads;
            first += t.rows;
        }
    begin_ = total * part.index / part.count;
    end_ = total * (part.index + 1) / part.count;
}

attention_split::tile attention_split::tile_at(sequence_chunk const& chunk, std::int32_t first) const
{
    auto position = chunk.first_position + first;
    auto rows = std::min(chunk.rows - first, tile_rows_ - position % tile_rows_);
    std::int64_t keys = visible_end(chunk, position + rows - 1);
    if (args_.window > 0) keys = std::min<std::int64_t>(keys, keys - position + args_.window);
    // The constant stands for the work that does not grow with the keys: starting, normalising, storing. Costs are
    // even: a unit belongs to whoever owns its middle.
    return {first, rows, 2 * rows * (keys + 32)};
}

bool attention_split::next(attention_item& item)
{
    while (chunk_ < args_.chunks.size()) {
        auto const& chunk = args_.chunks[chunk_];
        if (first_ >= chunk.rows) {
            ++chunk_;
            first_ = 0;
            continue;
        }
        auto t = tile_at(chunk, first_);
        auto skip = begin_ - passed_ - t.cost / 2;
        auto stop = end_ - passed_ - t.cost / 2;
        std::int64_t heads = args_.heads;
        auto from = skip <= 0 ? 0 : std::min(heads, (skip + t.cost - 1) / t.cost);
        auto to = stop <= 0 ? 0 : std::min(heads, (stop + t.cost - 1) / t.cost);
        head_ = std::max(head_, static_cast<std::int32_t>(from));
        if (head_ >= to) {
            if (stop <= 0) return false;
            passed_ += t.cost * heads;
            first_ += t.rows;
            head_ = 0;
            continue;
        }
        auto group = args_.heads / args_.kv.kv_heads;
        item.chunk = &chunk;
        item.first = t.first;
        item.rows = t.rows;
        item.kv_head = head_ / group;
        item.first_head = head_;
        item.heads = std::min({static_cast<std::int32_t>(to) - head_, group - head_ % group, item_heads_});
        head_ += item.heads;
        return true;
    }
    return false;
}

} // namespace plait::host
