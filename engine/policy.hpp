#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <plait/actors/time/clock.hpp>
#include <plait/streams/stream_role.hpp>

namespace plait {

class cost_model;

using sequence_id = std::uint64_t;

/// What a policy sees of a sequence that could take part in the next step.
struct sequence_view {
    sequence_id id = 0;
    std::string_view tenant;
    std::int32_t priority = 0;
    time_point arrival{};
    std::optional<time_point> deadline;
    bool running = false;       ///< has slots and perhaps pages; otherwise it waits for its first step, or again
    std::int32_t slots = 1;     ///< slots that starting it takes: one for each choice
    std::int64_t prompt = 0;    ///< tokens of its prompt
    std::int64_t computed = 0;  ///< tokens in the KV cache once the steps in flight are done
    std::int64_t pending = 0;   ///< tokens that a step can compute now: 1 while it decodes, 0 while it is parked
    std::int64_t together = 0;  ///< so many of its pending tokens at least are computed in one step and lane, or none
    std::int64_t generated = 0; ///< tokens sampled, those of steps in flight included
    std::int64_t pages = 0;     ///< pages that it would give back if it were preempted
    std::int64_t held = 0;      ///< pages in its table
    std::int64_t reserved = 0;  ///< pages that starting it sets aside (admission::reserve), otherwise 0
    bool shared_tail = false;   ///< its next token copies a page first
    bool parked = false;        ///< its reader is behind: until it has caught up, all it can do is give way

    bool decoding() const noexcept { return running && pending == 1 && generated > 0; }
};

/// Free pages that `tokens` more tokens of `s` take. What a running sequence reserved costs nothing any more.
std::int64_t pages_for(sequence_view const& s, std::int64_t tokens) noexcept;

/// The engine as a policy sees it: a value, the same in production and in simulation.
struct snapshot {
    time_point now{};
    std::int64_t token_budget = 0;            ///< tokens that a step may compute
    std::int64_t sequence_budget = 0;         ///< sequences that a step may have
    std::int64_t free_slots = 0;              ///< sequences that may start
    std::int64_t free_pages = 0;              ///< pages that are neither used nor reserved
    std::int64_t coming_slots = 0;            ///< slots that the steps in flight will free
    std::int64_t coming_pages = 0;            ///< pages that the steps in flight will free
    std::int64_t lanes = 1;                   ///< that a step may have
    cost_model const* costs = nullptr;        ///< what lanes are worth; null: one lane is best
    std::span<sequence_view const> sequences; ///< in order of arrival
};

/// What the next step computes. An empty plan means: wait for something to change.
struct step_plan {
    struct entry {
        sequence_id id = 0;
        std::int64_t tokens = 0; ///< 1 … pending; all of them samples the next token
        std::int32_t lane = 0;
    };
    /// A sequence has one entry, or one in each of several lanes, in ascending order: chunks that follow each other.
    std::vector<entry> entries;
    std::vector<sequence_id> preempt; ///< running sequences that give their pages back and are recomputed later
    /// The lanes, as the streams that they compute on: compute or urgent. Each is a pass of its own; the passes take
    /// turns at their collectives, so that one computes while the other's sums are under way. Empty: one lane. How a
    /// step is divided changes no bit of an answer.
    std::vector<stream_role> lanes;
};

/// Decides what each step computes. Derive, or make one of a callable (make_policy); engine_options::schedule takes it.
/// Deterministic; it may keep state, but does no I/O and knows no clock but snapshot::now, so that the same object runs
/// in production and in simulation. Called by the engine only, never at the same time twice.
struct policy {
    virtual ~policy() = default;
    virtual step_plan next(snapshot const& now) = 0;
};

/// A policy made of a callable.
std::unique_ptr<policy> make_policy(std::function<step_plan(snapshot const&)> next);

/// Throws error(errc::bad_plan), naming what is wrong, unless `plan` keeps to the budgets of `now`: sequences known and
/// named once, or in ascending lanes, tokens within pending and those that belong together, lanes that there are, the
/// token, sequence, slot and page budgets.
void check(step_plan const& plan, snapshot const& now);

} // namespace plait
