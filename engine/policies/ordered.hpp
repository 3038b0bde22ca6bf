#pragma once

#include <vector>

#include <plait/engine/policy.hpp>

namespace plait {

/// Builds a plan by the rules that the built-in policies share; `order` says who is served first.
///
/// 1. Every decoding sequence gets its token. When pages run out, the last sequence of the order that runs is
///    preempted, so the first one always progresses.
/// 2. What is left of the token budget goes to prompts in the order, the first as far as possible, then the next. So
///    chunks of a long prompt ride along with the decoding sequences instead of stopping them.
/// 3. A waiting sequence starts when there are slots and pages for its whole prompt and its first token. Until it does,
///    none behind it starts; those that run go on.
/// 4. A sequence whose reader is behind gives way to whoever needs its slot or its pages: reading slowly harms nobody.
/// 5. The step is divided into lanes where that makes it shorter (choose_lanes).
step_plan plan_in_order(snapshot const& now, std::vector<sequence_view const*> const& order);

/// First come, first served.
class first_come_first_served final : public policy {
public:
    step_plan next(snapshot const& now) override;
};

/// The shortest remaining prompt first, then the earlier arrival: the least mean time to the first token. A steady
/// stream of short prompts can hold up a long one.
class shortest_prefill_first final : public policy {
public:
    step_plan next(snapshot const& now) override;
};

} // namespace plait
