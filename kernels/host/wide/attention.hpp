#pragma once

#include <plait/kernels/host/attention_split.hpp>
#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/wide/rows.hpp>

namespace plait::host::wide {

inline constexpr int tile_keys = static_cast<int>(attention_tile);
inline constexpr int tile_pages = tile_keys / static_cast<int>(page_tokens);

/// What an item covers: all its queries (row by row, the heads of a row side by side) go through each tile of keys
/// while it is in the nearest cache, in blocks: a block's scores, weights and sums never leave it either.
inline constexpr int most_queries = 64;
inline constexpr int most_item_heads = 16;
inline constexpr int most_dims = 512;
/// Floats between queries: a constant, so that one address serves a whole block; and no multiple of a cache's period.
inline constexpr int query_stride = most_dims + 16;

/// Rows of a tile of queries for `group` query heads on one KV head.
constexpr std::int32_t query_rows(std::int32_t group) noexcept
{
    return group == 1 ? 32 : group <= 4 ? 16 : group <= 8 ? 8 : 4;
}

template<class L, kv_type Type>
class attention_kernel {
public:
    using vector = typename L::vector;

    attention_kernel(attention_args const& args, std::byte* scratch, product_table const& table) noexcept
        : args_(args)
        , table_(table)
        , layout_(layout_of(Type, args.kv.head_dim))
        , dims_(args.kv.head_dim)
        , stride_((args.kv.head_dim + 15) / 16 * 16)
    {
        auto* p = reinterpret_cast<float*>(scratch);
        scores_ = p;
        sums_ = scores_ + block_queries_padded * tile_keys;
        largest_ = sums_ + most_queries * 16;
        factors_ = largest_ + most_queries + 16;
        queries_ = factors_ + 16;
        out_ = queries_ + most_queries * query_stride;
    }

    void run(attention_item const& item) noexcept
    {
        item_ = item;
        count_ = item.rows * item.heads;
        start();
        auto const position = item.chunk->first_position + item.first;
        auto const last = position + item.rows - 1;
        std::int32_t first_key = 0;
        if (args_.window > 0 && position >= args_.window) first_key = position - args_.window + 1;
        for (auto tile = first_key / tile_keys * tile_keys; tile <= last; tile += tile_keys)
            step(tile);
        finish();
    }

private:
    static constexpr int block_queries = L::block_queries;
    static constexpr int block_vectors = L::block_vectors;
    static constexpr int block_queries_padded = 16;

    /// The keys of a tile that a row sees, relative to the tile's first; empty if `first >= last`.
    struct visible {
        int first;
        int last;
    };

    // Queries that go through the registers together; every size has code of its own.
    static int block_size(int queries) noexcept
    {
        if (queries >= block_queries) return block_queries;
        return queries > 8 ? (queries + 1) / 2 : queries == 7 ? 4 : queries;
    }
    template<class F>
    static void dispatch(int size, F f) noexcept
    {
        switch (size) {
        case 1:
            f.template operator()<1>();
            break;
        case 2:
            f.template operator()<2>();
            break;
        case 3:
            f.template operator()<3>();
            break;
        case 4:
            f.template operator()<4>();
            break;
        case 5:
            f.template operator()<5>();
            break;
        case 6:
            f.template operator()<6>();
            break;
        default:
            if constexpr (block_queries >= 8)
                if (size == 8) f.template operator()<8>();
            if constexpr (block_queries >= 12)
                if (size == 12) f.template operator()<12>();
        }
    }

    static vector load_stored(std::byte const* p) noexcept
    {
        if constexpr (Type == kv_type::f32)
            return L::load(reinterpret_cast<float const*>(p));
        else if constexpr (Type == kv_type::f16)
            return L::load_f16(reinterpret_cast<std::uint16_t const*>(p));
        else
            return L::load_i8(reinterpret_cast<std::int8_t const*>(p));
    }
    static constexpr int bytes = static_cast<int>(element_bytes(Type));

    visible visible_to(int row, std::int32_t tile) const noexcept
    {
        auto position = item_.chunk->first_position + item_.first + row;
        auto first = args_.window > 0 ? position - args_.window + 1 - tile : -tile;
        auto last = position + 1 - tile;
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
            parts_[p] = args_.kv.pages + page * args_.kv.page_stride +
                        static_cast<std::size_t>(item_.kv_head) * layout_.head_bytes;
        }
        for (int size = 0; block_ < count_; block_ += size) {
            size = block_size(count_ - block_);
            dispatch(size, [&]<int Q>() {
                int p = first_page;
                for (; p + block_vectors <= pages; p += block_vectors)
                    score<Q, block_vectors>(p);
                for (; p < pages; ++p)
                    score<Q, 1>(p);
            });
            weigh(size);
            add_values(size);
        }
        block_ = 0;
    }

    // The scores of the block's Q queries and the keys of V pages.
    template<int Q, int V>
    void score(int page) const noexcept
    {
        vector sums[Q][V];
        std::byte const* keys[V];
        vector scales[V];
        for (int v = 0; v < V; ++v) {
            keys[v] = parts_[page + v];
            if constexpr (Type == kv_type::q8) scales[v] = L::load(scales_of(page + v));
            for (int q = 0; q < Q; ++q)
                sums[q][v] = L::set(0);
        }
        float const* queries = queries_ + block_ * query_stride;
        int const dims = dims_;
        for (int d = 0; d < dims; ++d) {
            vector key[V];
            for (int v = 0; v < V; ++v)
                key[v] = load_stored(keys[v] + d * 16 * bytes);
            for (int q = 0; q < Q; ++q) {
                auto query = L::set(queries[q * query_stride + d]);
                for (int v = 0; v < V; ++v)
                    sums[q][v] = L::fma(query, key[v], sums[q][v]);
            }
        }
        auto const scale = L::set(args_.scale);
        float* out = scores_ + page * 16;
        for (int v = 0; v < V; ++v)
            for (int q = 0; q < Q; ++q) {
                auto s = sums[q][v];
                if constexpr (Type == kv_type::q8) s = L::mul(s, scales[v]);
                L::store(out + q * tile_keys + v * 16, L::mul(s, scale));
            }
    }

    float const* scales_of(int page) const noexcept
    {
        return reinterpret_cast<float const*>(parts_[page] + layout_.scales_offset);
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
                if constexpr (Type == kv_type::q8) w = L::mul(w, L::load(scales_of(k / 16) + 16));
                L::store(scores + k, w);
            }
            L::store(sums_ + (block_ + q) * 16, sum);
        }
    }

    // Hidden keys take no part at all, since what their slots hold may be anything. So the keys that all rows of a
    // block see go through it together, and each row's others on their own, ascending.
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
                if (v.first < v.last) add_keys(from, size, v, true);
            });
            return;
        }
        if (low) each_row([&](visible v, int from, int size) { add_keys(from, size, {v.first, common.first}, true); });
        add_keys(first, count, common, !low);
        each_row([&](visible v, int from, int size) {
            if (common.last < v.last) add_keys(from, size, {common.last, v.last}, false);
        });
    }

    void add_keys(int first, int count, visible keys, bool rescale) noexcept
    {
        for (int q = first, size = 0; q < first + count; q += size) {
            size = block_size(first + count - q);
            dispatch(size, [&]<int Q>() {
                int d = 0;
                for (; d + 16 * block_vectors <= dims_; d += 16 * block_vectors)
                    accumulate<Q, block_vectors>(q, d, keys, rescale);
                for (; d < dims_; d += 16)
                    accumulate<Q, 1>(q, d, keys, rescale);
            });
        }
    }

    // Adds weighted values to 16 V dimensions of Q outputs.
    template<int Q, int V>
    void accumulate(int first, int dim, visible keys, bool rescale) const noexcept
    {
        vector sums[Q][V];
        float* out = out_ + first * stride_ + dim;
        auto const stride = stride_;
        for (int q = 0; q < Q; ++q)
            for (int v = 0; v < V; ++v) {
                sums[q][v] = L::load(out + q * stride + 16 * v);
                if (rescale) sums[q][v] = L::mul(sums[q][v], L::set(factors_[first - block_ + q]));
            }
        float const* weights = scores_ + (first - block_) * tile_keys;
        bool const whole = dim + 16 * V <= dims_;
        for (int k = keys.first; k < keys.last;) {
            int const stop = (k / 16 + 1) * 16 < keys.last ? (k / 16 + 1) * 16 : keys.last;
            auto const* values = parts_[k / 16] + layout_.values_offset + (k % 16 * dims_ + dim) * bytes;
            for (; k < stop; ++k, values += dims_ * bytes) {
                vector value[V];
                for (int v = 0; v < V; ++v)
                    value[v] = whole ? load_stored(values + 16 * v * bytes) : load_tail(values, dims_ - dim);
                for (int q = 0; q < Q; ++q) {
                    auto weight = L::set(weights[q * tile_keys + k]);
                    for (int v = 0; v < V; ++v)
                        sums[q][v] = L::fma(weight, value[v], sums[q][v]);
                }
            }
        }
        for (int q = 0; q < Q; ++q)
            for (int v = 0; v < V; ++v)
                L::store(out + q * stride + 16 * v, sums[q][v]);
    }

    // The last dimensions of a head whose size is no multiple of 16: nothing beyond them is read.
    [[gnu::noinline]] static vector load_tail(std::byte const* p, int count) noexcept
    {
        alignas(64) std::byte part[16 * bytes] = {};
        std::memcpy(part, p, static_cast<std::size_t>(count * bytes));
        return load_stored(part);
    }

    void finish() noexcept
    {
        auto const& to = args_.out;
        for (int q = 0; q < count_; ++q) {
            float* out = out_ + q * stride_;
            auto const inverse = L::set(1.0f / L::sum(L::load(sums_ + q * 16)));
            for (int d = 0; d < stride_; d += 16)
                L::store(out + d, L::mul(L::load(out + d), inverse));
            std::int64_t row = item_.chunk->first_row + item_.first + q / item_.heads;
            auto at = row * to.cols + (item_.first_head + q % item_.heads) * dims_;
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
    std::byte const* parts_[tile_pages];
    float* scores_;  // [query of the block][key of the tile], then weights
    float* sums_;    // [query][16]: denominators
    float* largest_; // [query]
    float* factors_; // [query of the block]
    float* queries_; // [query][query_stride]
    float* out_;     // [query][stride_]
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
