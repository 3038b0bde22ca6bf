#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/rope.hpp>
#include <plait/kernels/host/scalar/norm_row.hpp>

#include <algorithm>

namespace plait::host::scalar {

namespace {

void normalise(float* x, std::int64_t dims, norm_kind kind, float const* weight, float eps)
{
    auto const in = measure(kind, x, dims, eps);
    for (std::int64_t d = 0; d < dims; ++d)
        x[d] = normalised(in, x[d], weight + d);
}

// By the angles of one row of the table.
void rotate(float* x, rope_view const& rope, rope_style style, std::int64_t table_row)
{
    std::int64_t half = rope.dims / 2;
    for (std::int64_t i = 0; i < half; ++i) {
        float c = rope.cos[table_row * half + i];
        float s = rope.sin[table_row * half + i];
        auto first = style == rope_style::pairs ? 2 * i : i;
        auto second = style == rope_style::pairs ? 2 * i + 1 : i + half;
        float a = x[first];
        float b = x[second];
        x[first] = std::fma(a, c, b * -s);
        x[second] = std::fma(b, c, a * s);
    }
}

// Writes one head of one token: element d goes to `out[d * step]`.
void store(float const* x, std::int64_t dims, kv_type type, std::byte* out, std::int64_t step, float* scale)
{
    switch (type) {
    case kv_type::f32:
        for (std::int64_t d = 0; d < dims; ++d)
            reinterpret_cast<float*>(out)[d * step] = x[d];
        break;
    case kv_type::f16:
        for (std::int64_t d = 0; d < dims; ++d)
            reinterpret_cast<std::uint16_t*>(out)[d * step] = f32_to_f16(x[d]);
        break;
    case kv_type::q8: {
        float largest = 0;
        bool finite = true;
        for (std::int64_t d = 0; d < dims; ++d) {
            finite = finite && std::fabs(x[d]) < math::infinity;
            largest = std::max(largest, std::fabs(x[d]));
        }
        auto range = q8_range(largest, finite);
        *scale = range.scale;
        for (std::int64_t d = 0; d < dims; ++d) {
            float q = finite ? (x[d] * range.inverse + math::rounder) - math::rounder : 0.0f;
            reinterpret_cast<std::int8_t*>(out)[d * step] = static_cast<std::int8_t>(q);
        }
        break;
    }
    }
}

} // namespace

void rope_and_store(rope_args const& args, share part)
{
    auto const& kv = args.kv;
    auto const dims = kv.head_dim;
    auto const layout = layout_of(kv.type, dims);
    std::int64_t rows = 0;
    for (auto const& chunk : args.chunks)
        rows += chunk.rows;
    // Heads outermost: the tokens of a page lie side by side in the transposed keys, and one worker writes them all.
    auto [begin, end] = part.range(rows * (args.heads + 2 * kv.kv_heads));
    for (std::int64_t head = 0, unit = 0; head < args.heads + 2 * kv.kv_heads; ++head)
        for (auto const& chunk : args.chunks)
            for (std::int64_t r = 0; r < chunk.rows; ++r, ++unit) {
                if (unit < begin || unit >= end) continue;
                auto row = chunk.first_row + r;
                auto position = chunk.first_position + r;
                float* x = args.qkv + row * args.stride + head * dims;
                bool query = head < args.heads;
                bool value = head >= args.heads + kv.kv_heads;
                if (!value) {
                    if (auto const* weight = head_norm(args, head))
                        normalise(x, dims, args.norm, weight, args.norm_eps);
                    auto const turns = rope_rows_of(args, chunk, row);
                    rotate(x, args.rope, args.style, turns.first);
                    if (args.style == rope_style::two_halves)
                        rotate(x + args.rope.dims, args.rope, args.style, turns.second);
                }
                if (query) continue;
                auto kv_head = (head - args.heads) % kv.kv_heads;
                auto slot = position % page_tokens;
                auto page = static_cast<std::size_t>(chunk.pages[position / page_tokens]);
                std::byte* base =
                    kv.pages + page * kv.page_stride + static_cast<std::size_t>(kv_head) * layout.head_bytes;
                float* scales = reinterpret_cast<float*>(base + layout.scales_offset) + slot;
                auto element = static_cast<std::int64_t>(element_bytes(kv.type));
                if (value)
                    store(x, dims, kv.type, base + layout.values_offset + slot * dims * element, 1,
                          scales + page_tokens);
                else
                    store(x, dims, kv.type, base + slot * element, page_tokens, scales);
            }
}

} // namespace plait::host::scalar
