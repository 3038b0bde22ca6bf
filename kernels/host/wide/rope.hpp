#pragma once

#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/rope.hpp>
#include <plait/kernels/host/wide/norm_row.hpp>

namespace plait::host::wide {

template<class L>
void rotate(float* x, rope_view const& rope, rope_style style, std::int64_t table_row) noexcept
{
    std::int64_t const half = rope.dims / 2;
    float const* cosines = rope.cos + table_row * half;
    float const* sines = rope.sin + table_row * half;
    if (style != rope_style::pairs) {
        for (std::int64_t i = 0; i < half; i += 16) {
            auto c = load_part<L>(cosines + i, half - i);
            auto s = load_part<L>(sines + i, half - i);
            auto a = load_part<L>(x + i, half - i);
            auto b = load_part<L>(x + half + i, half - i);
            store_part<L>(x + i, half - i, L::fma(a, c, L::mul(b, L::negate(s))));
            store_part<L>(x + half + i, half - i, L::fma(b, c, L::mul(a, s)));
        }
        return;
    }
    std::int64_t i = 0;
    for (; i + 8 <= half; i += 8) {
        auto v = L::load(x + 2 * i);
        auto s = L::negate_even(L::load_twice(sines + i));
        L::store(x + 2 * i, L::fma(v, L::load_twice(cosines + i), L::mul(L::swap_pairs(v), s)));
    }
    for (; i < half; ++i) {
        float a = x[2 * i];
        float b = x[2 * i + 1];
        x[2 * i] = std::fma(a, cosines[i], b * -sines[i]);
        x[2 * i + 1] = std::fma(b, cosines[i], a * sines[i]);
    }
}

// Converts a head to the stored type; `out` has room for whole vectors.
template<class L>
void convert(float const* x, std::int64_t dims, kv_type type, std::byte* out, float* scale) noexcept
{
    if (type == kv_type::f16) {
        for (std::int64_t d = 0; d < dims; d += 16)
            L::store_f16(reinterpret_cast<std::uint16_t*>(out) + d, load_part<L>(x + d, dims - d));
        return;
    }
    auto largest = L::set(0);
    std::uint32_t wrong = 0;
    for (std::int64_t d = 0; d < dims; d += 16) {
        auto v = L::magnitude(load_part<L>(x + d, dims - d));
        wrong |= L::unordered(v) | L::equal(v, L::set(math::infinity));
        largest = L::max(largest, v);
    }
    auto range = q8_range(L::largest(largest), wrong == 0);
    *scale = range.scale;
    auto const rounder = L::set(math::rounder);
    for (std::int64_t d = 0; d < dims; d += 16) {
        auto v = wrong ? L::set(0) : L::mul(load_part<L>(x + d, dims - d), L::set(range.inverse));
        L::store_i8(reinterpret_cast<std::int8_t*>(out) + d, L::sub(L::add(v, rounder), rounder));
    }
}

template<class T>
void scatter(std::byte const* from, std::int64_t count, std::byte* to, std::int64_t step) noexcept
{
    auto const* source = reinterpret_cast<T const*>(from);
    auto* target = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i)
        target[i * step] = source[i];
}

template<class L>
class rope_writer {
public:
    rope_writer(rope_args const& args, std::byte* scratch) noexcept
        : args_(args)
        , layout_(layout_of(args.kv.type, args.kv.head_dim))
        , scratch_(scratch)
    {
    }

    void row(std::int64_t head, sequence_chunk const& chunk, std::int64_t r) const noexcept
    {
        auto const& kv = args_.kv;
        auto const dims = kv.head_dim;
        auto row = chunk.first_row + r;
        auto position = chunk.first_position + r;
        float* x = args_.qkv + row * args_.stride + head * dims;
        bool query = head < args_.heads;
        bool value = head >= args_.heads + kv.kv_heads;
        if (!value) {
            if (auto const* weight = head_norm(args_, head)) {
                row_norm<L> const norm(args_.norm, x, dims, args_.norm_eps);
                for (std::int64_t d = 0; d < dims; d += 16)
                    store_part<L>(x + d, dims - d, norm.values(x, weight, d));
            }
            auto const turns = rope_rows_of(args_, chunk, row);
            rotate<L>(x, args_.rope, args_.style, turns.first);
            if (args_.style == rope_style::two_halves)
                rotate<L>(x + args_.rope.dims, args_.rope, args_.style, turns.second);
        }
        if (query) return;
        auto kv_head = (head - args_.heads) % kv.kv_heads;
        auto slot = position % page_tokens;
        auto page = static_cast<std::size_t>(chunk.pages[position / page_tokens]);
        std::byte* base = kv.pages + page * kv.page_stride + static_cast<std::size_t>(kv_head) * layout_.head_bytes;
        float* scale = reinterpret_cast<float*>(base + layout_.scales_offset) + slot + (value ? page_tokens : 0);
        auto const element = element_bytes(kv.type);
        auto const* stored = reinterpret_cast<std::byte const*>(x);
        if (kv.type != kv_type::f32) {
            convert<L>(x, dims, kv.type, scratch_, scale);
            stored = scratch_;
        }
        if (value)
            std::memcpy(base + layout_.values_offset + static_cast<std::size_t>(slot * dims) * element, stored,
                        static_cast<std::size_t>(dims) * element);
        else if (kv.type == kv_type::f32)
            scatter<std::uint32_t>(stored, dims, base + static_cast<std::size_t>(slot) * element, page_tokens);
        else if (kv.type == kv_type::f16)
            scatter<std::uint16_t>(stored, dims, base + static_cast<std::size_t>(slot) * element, page_tokens);
        else
            scatter<std::uint8_t>(stored, dims, base + static_cast<std::size_t>(slot) * element, page_tokens);
    }

private:
    rope_args const& args_;
    page_layout layout_;
    std::byte* scratch_;
};

template<class L>
void rope_and_store(rope_args const& args, share part)
{
    std::int64_t rows = 0;
    for (auto const& chunk : args.chunks)
        rows += chunk.rows;
    auto const heads = args.heads + 2 * args.kv.kv_heads;
    rope_writer<L> writer(args, part.scratch.data());
    auto [begin, end] = part.range(rows * heads);
    std::int64_t unit = 0;
    for (std::int64_t head = 0; head < heads; ++head)
        for (auto const& chunk : args.chunks) {
            auto first = begin > unit ? begin - unit : 0;
            auto last = end - unit < chunk.rows ? end - unit : chunk.rows;
            for (auto r = first; r < last; ++r)
                writer.row(head, chunk, r);
            unit += chunk.rows;
        }
}

} // namespace plait::host::wide
