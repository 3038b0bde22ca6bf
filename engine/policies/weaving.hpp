#pragma once

#include <plait/engine/policy.hpp>

namespace plait {

/// Divides a plan of one lane into two where `now.costs` says that it is done earlier so: the longest chunk of a prompt
/// in halves, one in each lane, everything else in the first; or those that decode in a lane on the urgent stream and
/// the prompts in the other. Leaves it as it is where there are no costs or no second lane. What is computed is the
/// same.
void choose_lanes(step_plan& plan, snapshot const& now);

} // namespace plait
