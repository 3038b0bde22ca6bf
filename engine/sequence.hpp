#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <plait/actors/time/clock.hpp>
#include <plait/engine/policy.hpp>
#include <plait/kernels/sampler.hpp>
#include <plait/kv/page_table.hpp>

namespace plait {

class answer;

/// What a prompt is computed for.
enum class reading : std::uint8_t {
    none,   ///< its answer
    scores, ///< the log-probability of each of its tokens but the first
    mean,   ///< the hidden states of all of its tokens, for their mean
    last,   ///< that of the last
    first,  ///< that of the first
};

/// What the choices of one request have in common.
struct sequence_request {
    std::string tenant;
    std::int32_t priority = 0;
    time_point arrival{};
    std::optional<time_point> deadline;
    std::int32_t choices = 1;
    std::int64_t prompt = 0; ///< tokens
    std::int64_t limit = 0;  ///< tokens of prompt and answer together, at most
    reading read = reading::none;
    sample_params sampling; ///< of the first choice, without pointers
    std::vector<token_bias> biases;
};

/// One sequence of tokens on its way through the engine: a prompt and its growing answer.
///
/// Waiting → running (it has a slot, and pages as it grows) → over; a preempted one waits again with what it has
/// generated as part of its prompt. A request of several choices runs as one sequence until its prompt is computed and
/// then as one for each choice, which share the prompt's pages. Steps in flight still use the slot and the pages of a
/// sequence that is over or preempted; it gives them back when the last of them has been retired.
struct sequence {
    sequence_id id = 0;
    std::int32_t choice = 0;
    std::shared_ptr<sequence_request const> request;
    std::shared_ptr<answer> owner;

    std::vector<std::int32_t> tokens; ///< known ones: the prompt and what has been sampled
    std::int64_t computed = 0;        ///< tokens whose keys and values the issued steps write
    std::int64_t ahead = 0;           ///< tokens that steps in flight will sample
    std::int32_t in_flight = 0;       ///< steps
    std::int64_t newest_step = 0;     ///< that it takes part in, by the scheduler's count
    sequence_pages pages;
    std::vector<std::int32_t> slots; ///< this one's; until the prompt is computed those of all choices
    std::int64_t reserved = 0;       ///< pages set aside, with admission::reserve
    bool running = false;
    bool sampling = false;  ///< its slot has its parameters
    bool over = false;      ///< takes part in no further step
    bool preempted = false; ///< will wait again when its steps are retired
    bool parked = false;    ///< its reader is behind: takes part in no step for now
    bool forked = false;    ///< its request's choices are sequences of their own

    std::int64_t total() const noexcept { return static_cast<std::int64_t>(tokens.size()) + ahead; }
    std::int64_t generated() const noexcept { return total() - request->prompt; }
    /// Tokens that a step may compute now; none once the answer is as long as it may get.
    std::int64_t pending() const noexcept
    {
        return total() < request->limit || request->read != reading::none ? total() - computed : 0;
    }
};

} // namespace plait
