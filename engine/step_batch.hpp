#pragma once

#include <cstdint>
#include <vector>

#include <plait/kernels/sampler.hpp>
#include <plait/kv/page_table.hpp>
#include <plait/streams/stream_role.hpp>

namespace plait {

/// What one step computes, as the engine sends it to every rank: a flat value of numbers and arrays of numbers, so that
/// it reaches a thread and a worker process alike.
struct step_batch {
    step_batch() = default; // not an aggregate: it is passed through awaits (docs/compilers.md)

    /// A range of the arrays below.
    struct range {
        std::uint32_t first = 0, count = 0;
    };

    /// What one lane computes: some rows, chunks and draws, which follow those of the lane before.
    struct pass {
        stream_role where = stream_role::compute;
        range rows, chunks, draws, scores, shown;
        std::uint32_t reads = 0; ///< bit i: lane i has earlier chunks of one of its sequences
    };

    /// Consecutive tokens of one sequence: rows [first_row, first_row + rows) of its pass, at positions from
    /// first_position.
    struct chunk {
        std::int32_t first_row = 0;
        std::int32_t rows = 0;
        std::int32_t first_position = 0;
        std::int32_t prefix = 0;          ///< sequence_chunk::prefix
        bool stretched_positions = false; ///< with the rotation of long sequences (rope_spec::long_factors)
    };

    /// A sequence that takes a slot in this step; its `seen` and `biases` are ranges of the arrays below.
    struct slot_start {
        std::int32_t slot = 0;
        sample_params params; ///< without its pointers
        std::uint32_t seen_first = 0, seen_count = 0;
        std::uint32_t bias_first = 0, bias_count = 0;
    };

    /// One KV group's page tables: chunk i's are pages[first[i]] up to pages[first[i + 1]].
    struct group_pages {
        std::vector<std::uint32_t> first;
        std::vector<page_id> pages;
        std::vector<page_copy> copies; ///< before anything else
    };

    std::int64_t number = 0;          ///< in the record
    std::vector<pass> passes;         ///< one a lane
    std::vector<std::int32_t> tokens; ///< one a row: an id, or -1 - slot for the slot's newest token
    std::vector<chunk> chunks;
    std::vector<group_pages> groups;
    std::vector<std::int32_t> logit_rows; ///< rows of their pass whose logits are drawn from, one for each of `draws`
    std::vector<draw_row> draws;
    std::vector<std::int32_t> scored_rows; ///< rows of their pass whose next token is known, and is scored
    std::vector<std::int32_t> scored;      ///< those tokens
    std::vector<std::int32_t> shown_rows;  ///< rows of their pass whose hidden state is wanted
    std::vector<slot_start> starts;
    std::vector<seen_token> seen;
    std::vector<token_bias> biases;
    std::int32_t top_logprobs = 0; ///< the most that any draw asks for
};

/// What a step gives back: a token for each draw, and what the prompts that are read were read for.
struct step_result {
    step_result() = default;

    std::vector<std::int32_t> tokens; ///< -1 where the logits are not numbers
    std::vector<float> logprobs;
    std::vector<token_logprob> top; ///< top_logprobs a draw
    std::vector<float> scores;      ///< log-probabilities, one for each of step_batch::scored
    std::vector<float> hidden;      ///< the model's width of them for each of step_batch::shown_rows
};

} // namespace plait
