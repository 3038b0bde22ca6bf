#include <plait/kernels/host/attention_split.hpp>
#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/product.hpp>

#include <algorithm>

namespace plait::host::scalar {

namespace {

// One KV head of one sequence, position by position.
class pages {
public:
    pages(paged_kv const& kv, sequence_chunk const& chunk, std::int32_t kv_head)
        : kv_(kv)
        , chunk_(chunk)
        , layout_(layout_of(kv.type, kv.head_dim))
        , offset_(static_cast<std::size_t>(kv_head) * layout_.head_bytes)
    {
    }

    float key(std::int64_t position, std::int64_t d) const
    {
        return read(part(position), d * page_tokens + position % page_tokens);
    }
    float value(std::int64_t position, std::int64_t d) const
    {
        return read(part(position) + layout_.values_offset, position % page_tokens * kv_.head_dim + d);
    }
    float key_scale(std::int64_t position) const { return scales(position)[0]; }
    float value_scale(std::int64_t position) const { return scales(position)[page_tokens]; }

private:
    std::byte const* part(std::int64_t position) const
    {
        return kv_.pages + static_cast<std::size_t>(chunk_.pages[position / page_tokens]) * kv_.page_stride + offset_;
    }
    float const* scales(std::int64_t position) const
    {
        return reinterpret_cast<float const*>(part(position) + layout_.scales_offset) + position % page_tokens;
    }
    float read(std::byte const* from, std::int64_t index) const
    {
        switch (kv_.type) {
        case kv_type::f32:
            return reinterpret_cast<float const*>(from)[index];
        case kv_type::f16:
            return f16_to_f32(reinterpret_cast<std::uint16_t const*>(from)[index]);
        case kv_type::q8:
            return static_cast<float>(reinterpret_cast<std::int8_t const*>(from)[index]);
        }
        return 0;
    }

    paged_kv const& kv_;
    sequence_chunk const& chunk_;
    page_layout layout_;
    std::size_t offset_;
};

// Of a query at `position`, which sees keys below `end`.
void attend(attention_args const& args, pages const& kv, float const* query, std::int64_t position, std::int64_t end,
            float const* sink, float* out)
{
    auto const dims = args.kv.head_dim;
    bool const scaled = args.kv.type == kv_type::q8;
    float const inverse_cap = args.soft_cap > 0 ? 1.0f / args.soft_cap : 0.0f;
    auto const first = args.window > 0 ? std::max<std::int64_t>(0, position - args.window + 1) : 0;
    float largest = -math::infinity;
    float lanes[16] = {};
    std::fill(out, out + dims, 0.0f);
    for (auto tile = first / attention_tile * attention_tile; tile < end; tile += attention_tile) {
        auto from = std::max(tile, first);
        auto to = std::min(tile + attention_tile, end);
        float scores[attention_tile];
        float previous = largest;
        for (auto k = from; k < to; ++k) {
            float a = 0;
            for (std::int64_t d = 0; d < dims; ++d)
                a = std::fma(query[d], kv.key(k, d), a);
            if (scaled) a = a * kv.key_scale(k);
            a = a * args.scale;
            if (args.soft_cap > 0) a = args.soft_cap * tanh(a * inverse_cap);
            scores[k - tile] = a;
            largest = std::max(largest, a);
        }
        float factor = exp(previous - largest);
        for (float& lane : lanes)
            lane = lane * factor;
        for (std::int64_t d = 0; d < dims; ++d)
            out[d] = out[d] * factor;
        for (auto k = from; k < to; ++k) {
            float weight = exp(scores[k - tile] - largest);
            lanes[k % 16] = lanes[k % 16] + weight;
            if (scaled) weight = weight * kv.value_scale(k);
            for (std::int64_t d = 0; d < dims; ++d)
                out[d] = std::fma(weight, kv.value(k, d), out[d]);
        }
    }
    float sum = sum_lanes(lanes);
    if (sink) sum = sum + exp(*sink - largest);
    float inverse = 1.0f / sum;
    for (std::int64_t d = 0; d < dims; ++d)
        out[d] = out[d] * inverse;
}

} // namespace

void attention(attention_args const& args, share part)
{
    auto const dims = args.kv.head_dim;
    attention_split split(args, 16, args.heads, part);
    attention_item item;
    while (split.next(item)) {
        pages kv(args.kv, *item.chunk, item.kv_head);
        for (auto r = item.first; r < item.first + item.rows; ++r)
            for (auto head = item.first_head; head < item.first_head + item.heads; ++head) {
                std::int64_t row = item.chunk->first_row + r;
                auto at = row * args.out.cols + head * dims;
                float* out = args.out.f32 ? args.out.f32 + at : reinterpret_cast<float*>(part.scratch.data());
                auto position = item.chunk->first_position + r;
                attend(args, kv, args.queries + row * args.stride + head * dims, position,
                       visible_end(*item.chunk, position), args.sinks ? args.sinks + head : nullptr, out);
                if (args.out.q8)
                    products(isa::scalar)
                        .quantise_row(out, dims, args.out.q8 + at, args.out.scales + at / 32, args.out.sums + at / 32);
            }
    }
}

} // namespace plait::host::scalar
