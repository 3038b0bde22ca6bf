#pragma once

#include <plait/kernels/host/attention.hpp>
#include <plait/kernels/host/wide/rows.hpp>

/// The two products of attention, for as many queries and keys as fit the registers.
namespace plait::host::wide {

inline constexpr int tile_keys = static_cast<int>(attention_tile);
inline constexpr int tile_pages = tile_keys / static_cast<int>(page_tokens);

inline constexpr int most_dims = 512;
/// Floats between queries: a constant, so that one address serves a whole block; and no multiple of a cache's period.
inline constexpr int query_stride = most_dims + 16;

template<class L, kv_type Type>
struct stored {
    static constexpr int bytes = static_cast<int>(element_bytes(Type));

    static typename L::vector load(std::byte const* p) noexcept
    {
        if constexpr (Type == kv_type::f32)
            return L::load(reinterpret_cast<float const*>(p));
        else if constexpr (Type == kv_type::f16)
            return L::load_f16(reinterpret_cast<std::uint16_t const*>(p));
        else
            return L::load_i8(reinterpret_cast<std::int8_t const*>(p));
    }

    /// The last dimensions of a head whose size is no multiple of 16: nothing beyond them is read.
    [[gnu::noinline]] static typename L::vector load_tail(std::byte const* p, int count) noexcept
    {
        alignas(64) std::byte part[16 * bytes] = {};
        std::memcpy(part, p, static_cast<std::size_t>(count) * bytes);
        return load(part);
    }
};

/// The parts of a tile's pages: [dims][16 keys] and [16 keys][dims] elements, and the scales of `q8`.
struct tile_parts {
    std::byte const* keys[tile_pages];
    std::byte const* values[tile_pages];
    float const* key_scales[tile_pages]; ///< null if the type has none
    float const* value_scales[tile_pages];
};

/// Writes the scores of Q queries, `query_stride` apart, and the keys of V pages to out[query][key of the tile].
template<class L, kv_type Type, int Q, int V>
void score(tile_parts const& parts, int page, float const* queries, int dims, float scale, float* out) noexcept
{
    using type = stored<L, Type>;
    typename L::vector sums[Q][V];
    std::byte const* keys[V];
    for (int v = 0; v < V; ++v) {
        keys[v] = parts.keys[page + v];
        for (int q = 0; q < Q; ++q)
            sums[q][v] = L::set(0);
    }
    for (int d = 0; d < dims; ++d) {
        typename L::vector key[V];
        for (int v = 0; v < V; ++v)
            key[v] = type::load(keys[v] + d * 16 * type::bytes);
        for (int q = 0; q < Q; ++q) {
            auto query = L::set(queries[q * query_stride + d]);
            for (int v = 0; v < V; ++v)
                sums[q][v] = L::fma(query, key[v], sums[q][v]);
        }
    }
    for (int v = 0; v < V; ++v) {
        float* to = out + (page + v) * 16;
        if (parts.key_scales[page + v]) {
            auto const key_scales = L::load(parts.key_scales[page + v]);
            for (int q = 0; q < Q; ++q)
                sums[q][v] = L::mul(sums[q][v], key_scales);
        }
        for (int q = 0; q < Q; ++q)
            L::store(to + q * tile_keys, L::mul(sums[q][v], L::set(scale)));
    }
}

/// Adds the values of the keys `first` up to `last` of the tile, weighted, to 16 V dimensions of Q outputs, which are
/// multiplied by `factors` before unless that is null.
template<class L, kv_type Type, int Q, int V>
void accumulate(tile_parts const& parts, int first, int last, float const* weights, float const* factors, int dims,
                int dim, float* out, int out_stride) noexcept
{
    using type = stored<L, Type>;
    typename L::vector sums[Q][V];
    for (int q = 0; q < Q; ++q)
        for (int v = 0; v < V; ++v) {
            sums[q][v] = L::load(out + q * out_stride + dim + 16 * v);
            if (factors) sums[q][v] = L::mul(sums[q][v], L::set(factors[q]));
        }
    bool const whole = dim + 16 * V <= dims;
    for (int k = first; k < last;) {
        int const stop = (k / 16 + 1) * 16 < last ? (k / 16 + 1) * 16 : last;
        auto const* values = parts.values[k / 16] + (k % 16 * dims + dim) * type::bytes;
        for (; k < stop; ++k, values += dims * type::bytes) {
            typename L::vector value[V];
            for (int v = 0; v < V; ++v)
                value[v] = whole ? type::load(values + 16 * v * type::bytes) : type::load_tail(values, dims - dim);
            for (int q = 0; q < Q; ++q) {
                auto weight = L::set(weights[q * tile_keys + k]);
                for (int v = 0; v < V; ++v)
                    sums[q][v] = L::fma(weight, value[v], sums[q][v]);
            }
        }
    }
    for (int q = 0; q < Q; ++q)
        for (int v = 0; v < V; ++v)
            L::store(out + q * out_stride + dim + 16 * v, sums[q][v]);
}

/// Queries that go through the registers together when `queries` are left.
template<class L>
int block_size(int queries) noexcept
{
    if (queries >= L::block_queries) return L::block_queries;
    return queries > 8 ? (queries + 1) / 2 : queries == 7 ? 4 : queries;
}

/// Calls f with a block's size as a template argument.
template<class L, class F>
void with_size(int size, F f) noexcept
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
        if constexpr (L::block_queries >= 8)
            if (size == 8) f.template operator()<8>();
        if constexpr (L::block_queries >= 12)
            if (size == 12) f.template operator()<12>();
    }
}

} // namespace plait::host::wide
