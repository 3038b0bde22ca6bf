#include <algorithm>
#include <string>

#include <plait/model/activations.hpp>

namespace plait {

namespace {

/// The widest that each activation gets over the layers.
struct widths {
    std::int64_t width = 0, qkv = 0, heads = 0, hidden = 0, vocabulary = 0;
    bool second_norm = false; ///< both sublayers of a layer read norms of the same stream
    bool apart = false;       ///< what a sublayer makes is not added to the stream right away
    std::int64_t experts = 0, slots = 0, expert_hidden = 0; ///< of mixtures; slots: experts of a token
};

widths widest(model_spec const& spec)
{
    widths w;
    w.width = spec.width;
    w.vocabulary = spec.vocabulary;
    for (auto const& layer : spec.layers) {
        auto const& a = layer.attention;
        w.qkv = std::max(w.qkv, a.query_width() + 2 * a.kv_width());
        w.heads = std::max(w.heads, a.query_width());
        w.hidden = std::max({w.hidden, layer.ffn.hidden, layer.ffn.experts.shared_hidden});
        auto const& e = layer.ffn.experts;
        w.experts = std::max(w.experts, e.count);
        w.slots = std::max(w.slots, e.used);
        w.expert_hidden = std::max(w.expert_hidden, e.hidden);
        w.second_norm = w.second_norm || (layer.parallel && !layer.shared_norm);
        w.apart = w.apart || layer.norms_output() || layer.ffn.experts.count > 0;
    }
    return w;
}

/// Hands out memory piece by piece; without a beginning it only counts.
struct arena {
    std::byte* begin = nullptr;
    std::int64_t used = 0;

    template<class T>
    T* take(std::int64_t count)
    {
        auto* out = begin == nullptr ? nullptr : reinterpret_cast<T*>(begin + used);
        used += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
        return out;
    }

    /// F32 values, and the same in 8 bit with a scale and a sum for each block: a product takes one or the other.
    activation_view take_both(std::int64_t rows, std::int64_t cols)
    {
        auto blocks = (cols + block_columns - 1) / block_columns;
        activation_view out{rows, cols};
        out.f32 = take<float>(rows * cols);
        out.q8 = take<std::int8_t>(rows * cols);
        out.scales = take<float>(rows * blocks);
        out.sums = take<float>(rows * blocks);
        return out;
    }
};

/// Summands that a rank has to keep, for a collective or for what comes between the product and the addition.
std::int64_t kept_summands(widths const& w, shard const& part)
{
    if (part.ranks > 1) return part.parts;
    if (part.parts > 1) return w.experts > 0 ? 2 : 1;
    return w.apart ? 1 : 0;
}

void take_mixture(lane_activations& lane, widths const& w, std::int64_t rows, arena& from)
{
    auto slots = rows * w.slots;
    lane.router = from.take<float>(rows * w.experts);
    lane.choice.ids = from.take<std::int32_t>(slots);
    lane.choice.weights = from.take<float>(slots);
    lane.choice.first = from.take<std::int32_t>(w.experts + 1);
    lane.choice.entries = from.take<std::int32_t>(slots);
    lane.expert_gated = from.take_both(slots, w.expert_hidden);
    lane.expert_out = from.take<float>(slots * w.width);
}

/// All that a lane computes in but for its logits.
void take_step(lane_activations& lane, widths const& w, shard const& part, step_limits const& limits, arena& from)
{
    auto rows = limits.rows;
    lane.x = from.take_both(rows, w.width);
    lane.normed = from.take_both(rows, w.width);
    if (w.second_norm) lane.normed_too = from.take_both(rows, w.width);
    lane.attended = from.take_both(rows, w.heads);
    lane.gated = from.take_both(rows, w.hidden);
    lane.qkv = from.take<float>(rows * w.qkv);
    lane.summands = from.take<float>(kept_summands(w, part) * rows * w.width);
    if (w.experts > 0) take_mixture(lane, w, rows, from);
    lane.last = from.take_both(limits.logit_rows, w.width);
}

/// The logits of a rank's rows; where ranks share them also what it has of all rows, and what it gets of its own.
void take_logits(lane_activations& lane, widths const& w, shard const& part, step_limits const& limits, arena& from)
{
    if (!part.last()) return;
    auto count = part.rows_each(limits.logit_rows) * w.vocabulary;
    lane.logits = from.take<float>(count);
    if (part.ranks > 1) lane.shards = from.take<float>(2 * count);
}

template<class Take>
std::int64_t bytes_of(Take const& take, widths const& w, shard const& part, step_limits const& limits)
{
    arena counted;
    lane_activations lane;
    take(lane, w, part, limits, counted);
    return counted.used;
}

} // namespace

std::vector<memory_line> activations::plan(model_spec const& spec, shard const& part, step_limits const& limits)
{
    auto w = widest(spec);
    auto lanes = limits.lanes > 1 ? std::to_string(limits.lanes) + " lanes × " : "";
    auto summands = kept_summands(w, part) * w.width;
    auto mixture = w.experts == 0
                       ? ""
                       : ", " + std::to_string(w.slots) + " experts of " + std::to_string(w.experts) + " × (hidden " +
                             std::to_string(w.expert_hidden) + " + " + std::to_string(w.width) + ")";
    std::vector<memory_line> lines;
    lines.push_back({"activations",
                     lanes + std::to_string(limits.rows) + " tokens × (2 × " + std::to_string(w.width) + " + QKV " +
                         std::to_string(w.qkv) + " + heads " + std::to_string(w.heads) + " + hidden " +
                         std::to_string(w.hidden) + ") in F32 and 8 bit" +
                         (summands > 0 ? ", sums " + std::to_string(summands) + " in F32" : "") + mixture,
                     limits.lanes * bytes_of(take_step, w, part, limits)});
    if (part.last())
        lines.push_back({"logits",
                         lanes + std::to_string(part.rows_each(limits.logit_rows)) + " × " +
                             std::to_string(w.vocabulary) + " × 4 B" + (part.ranks > 1 ? ", three times" : ""),
                         limits.lanes * bytes_of(take_logits, w, part, limits)});
    return lines;
}

activations::activations(device& where, model_spec const& spec, shard const& part, step_limits const& limits)
{
    auto w = widest(spec);
    qkv_width_ = w.qkv;
    auto each = bytes_of(take_step, w, part, limits) + bytes_of(take_logits, w, part, limits);
    memory_ = buffer(where, static_cast<std::size_t>(limits.lanes * each));
    arena from{memory_.data()};
    for (std::int64_t i = 0; i < limits.lanes; ++i) {
        auto& lane = lanes_.emplace_back();
        take_step(lane, w, part, limits, from);
        take_logits(lane, w, part, limits, from);
    }
}

} // namespace plait
