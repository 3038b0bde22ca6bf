#include <algorithm>
#include <unordered_map>

#include <plait/engine/costs.hpp>
#include <plait/engine/policies/weaving.hpp>

namespace plait {

void choose_lanes(step_plan& plan, snapshot const& now)
{
    if (now.costs == nullptr || now.lanes < 2 || plan.entries.empty()) return;
    std::unordered_map<sequence_id, sequence_view const*> views;
    for (auto const& s : now.sequences)
        views.emplace(s.id, &s);
    auto decodes = [&](step_plan::entry const& e) { return views.at(e.id)->decoding(); };
    step_shape shape;
    for (auto const& e : plan.entries) {
        (decodes(e) ? shape.decode : shape.prefill) += e.tokens;
        if (decodes(e)) shape.context += views.at(e.id)->computed;
    }

    auto fused = now.costs->fused(shape);
    auto longest = std::ranges::max_element(plan.entries, {}, &step_plan::entry::tokens);
    auto can_split = longest->tokens >= 2 && longest->tokens - longest->tokens / 2 >= views.at(longest->id)->together;
    auto split = can_split ? now.costs->split(shape) : fused;
    auto beside = shape.decode > 0 && shape.prefill > 0 ? now.costs->beside(shape) : fused;
    if (std::min(split, beside) >= fused) return;
    if (split <= beside) {
        auto second = *longest;
        second.lane = 1;
        second.tokens /= 2;
        longest->tokens -= second.tokens;
        plan.entries.push_back(second);
        plan.lanes = {stream_role::compute, stream_role::compute};
    } else {
        for (auto& e : plan.entries)
            e.lane = decodes(e) ? 0 : 1;
        plan.lanes = {stream_role::urgent, stream_role::compute};
    }
}

} // namespace plait
