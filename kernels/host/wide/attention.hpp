#pragma once

#include <plait/kernels/host/attention_split.hpp>
#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/wide/attention_block.hpp>

namespace plait::host::wide {

/// What an item covers: all its queries (row by row, the heads of a row side by side) go through each tile of keys
/// while it is in the nearest cache, in blocks: a block's scores, weights and sums never leave it either.
inline constexpr int most_queries = 64;
inline constexpr int most_item_heads = 16;

/// Rows of a tile of queries for `group` query heads on one KV head.
constexpr std::int32_t query_rows(std::int32_t group) noexcept
{
    return group == 1 ? 32 : group <= 4 ? 16 : group <= 8 ? 8 : 4;
}

template<class L, kv_type Type>
class attention_kernel {
public:
    attention_kernel(attention_args const& args, std::byte* scratch, product_table const& table) noexcept
        : args_(args)
        , table_(table)
        , layout_(layout_of(Type, args.kv.head_dim))
        , dims_(args.kv.head_dim)
        , stride_((args.kv.head_dim + 15) / 16 * 16)
    {
        auto* p = reinterpret_cast<float*>(scratch);
        scores_ = p;
        sums_ = scores_ + 16 * tile_keys;
        largest_ = sums_ + most_queries * 16;
        factors_ = largest_ + most_queries + 16;
        queries_ = factors_ + 16;
        out_ = queries_ + most_queries * query_stride;
        converted_ = out_ + most_queries * stride_;
    }

    void run(attention_item const& item) noexcept
    {
        item_ = item;
        count_ = item.rows * item.heads;
        start();
        auto const position = item.chunk->first_position + item.first;
        auto const end = visible_end(*item.chunk, position + item.rows - 1);
        std::int32_t first_key = 0;
        if (args_.window > 0 && position >= args_.window) first_key = position - args_.window + 1;
        for (auto tile = first_key / tile_keys * tile_keys; tile < end; tile += tile_keys)
            step(tile);
        finish();
    }

private:
    static constexpr int block_vectors = L::block_vectors;

    /// The keys of a tile that a row sees, relative to the tile's first; empty if `first >= last`.
    struct visible {
        int first;
        int last;
    };

    visible visible_to(int row, std::int32_t tile) const noexcept
    {
        auto position = item_.chunk->first_position + item_.first + row;
        auto first = args_.window > 0 ? position - args_.window + 1 - tile : -tile;
        auto last = visible_end(*item_.chunk, position) - tile;
        return {first > 0 ? first : 0, last < tile_keys ? last : tile_keys};
    }

    void start() noexcept
    {
        for (int q = 0; q < count_; ++q) {
            L::store(sums_ + q * 16, L::set(0));
            for (int d = 0; d < stride_; d += 16)
                L::store(out_ + q * stride_ + d, L::set(0));
            largest_[q] = -math::infinity;
            std::int64_t row = item_.chunk->first_row + item_.first + q / item_.heads;
            std::memcpy(queries_ + q * query_stride,
                        args_.queries + row * args_.stride + (item_.first_head + q % item_.heads) * dims_,
                        static_cast<std::size_t>(dims_) * sizeof(float));
        }
    }

    void step(std::int32_t tile) noexcept
    {
        int first = tile_keys;
        int last = 0;
        for (int row = 0; row < item_.rows; ++row) {
            auto v = rows_[row] = visible_to(row, tile);
            if (v.first >= v.last) continue;
            first = v.first < first ? v.first : first;
            last = v.last > last ? v.last : last;
        }
        int const first_page = first / 16;
        int const pages = (last + 15) / 16;
        for (int p = first_page; p < pages; ++p) {
            auto page = static_cast<std::size_t>(item_.chunk->pages[tile / 16 + p]);
            auto const* part = args_.kv.pages + page * args_.kv.page_stride +
                               static_cast<std::size_t>(item_.kv_head) * layout_.head_bytes;
            parts_.keys[p] = part;
            parts_.values[p] = part + layout_.values_offset;
            bool const scaled = Type == kv_type::q8;
            auto const* scales = reinterpret_cast<float const*>(part + layout_.scales_offset);
            parts_.key_scales[p] = scaled ? scales : nullptr;
            parts_.value_scales[p] = scaled ? scales + page_tokens : nullptr;
        }
        // Several blocks share the work of a conversion.
        if (Type != kv_type::f32 && count_ >= 2 * L::block_queries) {
            convert(first_page, pages);
            blocks<kv_type::f32>(first_page, pages);
        } else {
            blocks<Type>(first_page, pages);
        }
    }

    // Copies the pages of a tile to F32.
    void convert(int first_page, int pages) noexcept
    {
        using type = stored<L, Type>;
        float* to = converted_;
        for (int p = first_page; p < pages; ++p)
            for (auto* part : {&parts_.keys[p], &parts_.values[p]}) {
                for (int i = 0; i < dims_; ++i)
                    L::store(to + 16 * i, type::load(*part + 16 * i * type::bytes));
                *part = reinterpret_cast<std::byte const*>(to);
                to += 16 * dims_;
            }
    }

    template<kv_type Read>
    void blocks(int first_page, int pages) noexcept
    {
        for (int size = 0; block_ < count_; block_ += size) {
            size = block_size<L>(count_ - block_);
            with_size<L>(size, [&]<int Q>() {
                float const* queries = queries_ + block_ * query_stride;
                int p = first_page;
                for (; p + block_vectors <= pages; p += block_vectors)
                    score<L, Read, Q, block_vectors>(parts_, p, queries, dims_, args_.scale, scores_);
                for (; p < pages; ++p)
                    score<L, Read, Q, 1>(parts_, p, queries, dims_, args_.scale, scores_);
            });
            weigh(size);
            add_values<Read>(size);
        }
        block_ = 0;
    }

    // Scores become weights; the largest score, the factors and the denominators move on.
    void weigh(int size) noexcept
    {
        auto const none = L::set(-math::infinity);
        float const cap = args_.soft_cap;
        float updated[16] = {};
        for (int q = 0; q < size; ++q) {
            auto v = rows_[(block_ + q) / item_.heads];
            updated[q] = largest_[block_ + q];
            if (v.first >= v.last) continue;
            float* scores = scores_ + q * tile_keys;
            auto largest = L::set(updated[q]);
            for (int k = v.first / 16 * 16; k < v.last; k += 16) {
                auto s = L::load(scores + k);
                bool const edge = k < v.first || k + 16 > v.last;
                if (cap > 0) s = L::mul(L::set(cap), L::tanh(L::mul(s, L::set(1.0f / cap))));
                if (edge) s = L::keep(s, k < v.first ? v.first - k : 0, k + 16 > v.last ? v.last - k : 16, none);
                if (edge || cap > 0) L::store(scores + k, s);
                largest = L::max(s, largest);
            }
            updated[q] = L::largest(largest);
        }
        auto const now = L::load(updated);
        L::store(factors_, L::exp(L::sub(L::load(largest_ + block_), now)));
        store_part<L>(largest_ + block_, size, now);
        for (int q = 0; q < size; ++q) {
            auto v = rows_[(block_ + q) / item_.heads];
            if (v.first >= v.last) continue;
            float* scores = scores_ + q * tile_keys;
            auto const largest = L::set(updated[q]);
            auto sum = L::mul(L::load(sums_ + (block_ + q) * 16), L::set(factors_[q]));
            for (int k = v.first / 16 * 16; k < v.last; k += 16) {
                auto w = L::exp(L::sub(L::load(scores + k), largest));
                sum = L::add(sum, w);
                if constexpr (Type == kv_type::q8) w = L::mul(w, L::load(parts_.value_scales[k / 16]));
                L::store(scores + k, w);
            }
            L::store(sums_ + (block_ + q) * 16, sum);
        }
    }

    // Hidden keys take no part at all, since what their slots hold may be anything. So the keys that all rows of a
    // block see go through it together, and each row's others on their own, ascending.
    template<kv_type Read>
    void add_values(int count) noexcept
    {
        int const first = block_;
        visible common = {0, tile_keys};
        bool low = false;
        int const first_row = first / item_.heads;
        int const last_row = (first + count - 1) / item_.heads;
        for (int row = first_row; row <= last_row; ++row) {
            auto v = rows_[row];
            low = low || v.first != rows_[first_row].first;
            common.first = v.first > common.first ? v.first : common.first;
            common.last = v.last < common.last ? v.last : common.last;
        }
        auto each_row = [&](auto f) {
            for (int row = first_row; row <= last_row; ++row) {
                int from = row * item_.heads > first ? row * item_.heads : first;
                int to = (row + 1) * item_.heads < first + count ? (row + 1) * item_.heads : first + count;
                f(rows_[row], from, to - from);
            }
        };
        if (common.first >= common.last) {
            each_row([&](visible v, int from, int size) {
                if (v.first < v.last) add_keys<Read>(from, size, v, true);
            });
            return;
        }
        if (low)
            each_row([&](visible v, int from, int size) { add_keys<Read>(from, size, {v.first, common.first}, true); });
        add_keys<Read>(first, count, common, !low);
        each_row([&](visible v, int from, int size) {
            if (common.last < v.last) add_keys<Read>(from, size, {common.last, v.last}, false);
        });
    }

    template<kv_type Read>
    void add_keys(int first, int count, visible keys, bool rescale) noexcept
    {
        for (int q = first, size = 0; q < first + count; q += size) {
            size = block_size<L>(first + count - q);
            float const* weights = scores_ + (q - block_) * tile_keys;
            float const* factors = rescale ? factors_ + (q - block_) : nullptr;
            float* out = out_ + q * stride_;
            with_size<L>(size, [&]<int Q>() {
                int d = 0;
                for (; d + 16 * block_vectors <= dims_; d += 16 * block_vectors)
                    accumulate<L, Read, Q, block_vectors>(parts_, keys.first, keys.last, weights, factors, dims_, d,
                                                          out, stride_);
                for (; d < dims_; d += 16)
                    accumulate<L, Read, Q, 1>(parts_, keys.first, keys.last, weights, factors, dims_, d, out, stride_);
            });
        }
    }

    void finish() noexcept
    {
        auto const& to = args_.out;
        for (int q = 0; q < count_; ++q) {
            float* out = out_ + q * stride_;
            auto const head = item_.first_head + q % item_.heads;
            float sum = L::sum(L::load(sums_ + q * 16));
            if (args_.sinks) sum = sum + exp(args_.sinks[head] - largest_[q]);
            auto const inverse = L::set(1.0f / sum);
            for (int d = 0; d < stride_; d += 16)
                L::store(out + d, L::mul(L::load(out + d), inverse));
            std::int64_t row = item_.chunk->first_row + item_.first + q / item_.heads;
            auto at = row * to.cols + head * dims_;
            if (to.f32) std::memcpy(to.f32 + at, out, static_cast<std::size_t>(dims_) * sizeof(float));
            if (to.q8) table_.quantise_row(out, dims_, to.q8 + at, to.scales + at / 32, to.sums + at / 32);
        }
    }

    attention_args const& args_;
    product_table const& table_;
    page_layout layout_;
    int dims_;
    int stride_; // of `out_`: whole vectors
    attention_item item_;
    int count_ = 0; // queries of the item
    int block_ = 0; // the first of the block at hand
    visible rows_[most_queries];
    tile_parts parts_;
    float* scores_;    // [query of the block][key of the tile], then weights
    float* sums_;      // [query][16]: denominators
    float* largest_;   // [query]
    float* factors_;   // [query of the block]
    float* queries_;   // [query][query_stride]
    float* out_;       // [query][stride_]
    float* converted_; // the keys and values of a tile in F32
};

template<class L, kv_type Type>
void run_attention(attention_args const& args, share part, product_table const& table)
{
    attention_kernel<L, Type> kernel(args, part.scratch.data(), table);
    attention_split split(args, query_rows(args.heads / args.kv.kv_heads), most_item_heads, part);
    attention_item item;
    while (split.next(item))
        kernel.run(item);
}

template<class L>
void attention(attention_args const& args, share part, product_table const& table)
{
    switch (args.kv.type) {
    case kv_type::f32:
        run_attention<L, kv_type::f32>(args, part, table);
        break;
    case kv_type::f16:
        run_attention<L, kv_type::f16>(args, part, table);
        break;
    case kv_type::q8:
        run_attention<L, kv_type::q8>(args, part, table);
        break;
    }
}

} // namespace plait::host::wide
