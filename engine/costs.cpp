#include <algorithm>
#include <cmath>

#include <plait/engine/costs.hpp>

namespace plait {

cost_model::~cost_model() = default;

duration linear_costs::fused(step_shape const& step) const
{
    auto tokens = step.prefill + step.decode;
    return compute_.of(1, tokens) + step.context * two_.context + communicate_.of(1, tokens);
}

/// Two passes that compute for so long, and their sums.
duration linear_costs::woven(duration computes, std::int64_t tokens) const
{
    auto communicates = communicate_.of(2, tokens);
    return std::max(computes, communicates) + std::min(computes, communicates) / (2 * layers_);
}

duration linear_costs::split(step_shape const& step) const
{
    auto tokens = step.prefill + step.decode;
    return woven(compute_.of(2, tokens) + step.context * two_.context, tokens);
}

duration linear_costs::beside(step_shape const& step) const
{
    auto tokens = step.prefill + step.decode;
    auto attends = step.context * two_.context;
    auto decode = compute_.of(1, step.decode) + attends;
    auto prefill = compute_.of(1, step.prefill);
    auto memory = compute_.of(2, 0) + attends;
    auto arithmetic = compute_.of(0, tokens);
    auto least = std::max({memory, arithmetic, decode, prefill});
    auto hidden = two_.overlap * static_cast<double>((decode + prefill - least).count());
    return woven(decode + prefill - duration(std::llround(hidden)), tokens);
}

} // namespace plait
