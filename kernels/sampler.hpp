#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <plait/kernels/host/isa.hpp>
#include <plait/kernels/host/sample.hpp>
#include <plait/streams/flow.hpp>

namespace plait {

using host::sample_params;
using host::score_args;
using host::seen_token;
using host::token_bias;
using host::token_logprob;

/// One token to draw: from row i of the logits, for the sequence in `slot`.
struct draw_row {
    std::int32_t slot = 0;
    std::int32_t position = 0; ///< the index that the token will have in its sequence
};

/// Draws one token for each row of a step's logits.
struct draw_args {
    float* logits = nullptr; ///< rows.size() × vocabulary, F32; used up
    std::int64_t vocabulary = 0;
    std::span<draw_row const> rows;
    std::int32_t* tokens = nullptr; ///< one a row; -1 where the logits are not numbers
    float* logprobs = nullptr;      ///< one a row
    token_logprob* top = nullptr;   ///< top_stride a row, best first; unused entries have token -1
    std::int64_t top_stride = 0;
    std::size_t lane = 0; ///< draws of two lanes are under way at a time; their slots differ
};

/// The sampling state of the sequences that run on a device: for each slot the parameters, the tokens that penalties
/// count, and the newest token, which the next step may read before the host has seen it.
class sampler {
public:
    virtual ~sampler() = default;

    /// A new sequence takes `slot`, which no step in flight uses any more. `params` without its pointers.
    virtual void start(std::int32_t slot, sample_params const& params, std::span<seen_token const> seen,
                       std::span<token_bias const> biases) = 0;

    /// Puts the draw on the flow's stream.
    virtual void draw(flow& f, draw_args const& args) = 0;

    /// Puts on the flow's stream the log-probabilities of tokens that are known already.
    virtual void score(flow& f, score_args const& args) = 0;

    /// Puts on the flow's stream that these tokens were drawn, here or on other ranks: afterwards newest() has them and
    /// the penalties know of them. `tokens`: one for each of `rows`.
    virtual void note(flow& f, std::span<draw_row const> rows, std::int32_t const* tokens) = 0;

    /// The newest token of each slot, in device memory (gather_tokens_args::slots).
    virtual std::int32_t const* newest() const noexcept = 0;
};

/// A sampler of the host device with `slots` slots, in an available instruction set.
std::unique_ptr<sampler> make_host_sampler(host::isa set, std::int64_t slots);

} // namespace plait
