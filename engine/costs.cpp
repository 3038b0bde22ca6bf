#include <algorithm>

#include <plait/engine/costs.hpp>

namespace plait {

cost_model::~cost_model() = default;

duration linear_costs::fused(step_shape const& step) const
{
    auto tokens = step.prefill + step.decode;
    return compute_.of(1, tokens) + communicate_.of(1, tokens);
}

duration linear_costs::woven(std::int64_t tokens) const
{
    auto computes = compute_.of(2, tokens);
    auto communicates = communicate_.of(2, tokens);
    return std::max(computes, communicates) + std::min(computes, communicates) / (2 * layers_);
}

duration linear_costs::split(step_shape const& step) const
{
    return woven(step.prefill + step.decode);
}

duration linear_costs::beside(step_shape const& step) const
{
    return woven(step.prefill + step.decode);
}

} // namespace plait
