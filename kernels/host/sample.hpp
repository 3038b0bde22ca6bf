#pragma once

#include <plait/streams/share.hpp>

#include <cstdint>

namespace plait::host {

/// A token that the penalties know of. One entry a token.
struct seen_token {
    std::int32_t token = 0;
    std::int32_t count = 0; ///< how often it is in the output
    bool in_prompt = false;
};

/// A number added to one token's logit. -infinity bans it.
struct token_bias {
    std::int32_t token = 0;
    float bias = 0;
};

/// The order of filters: penalties and biases come first in both.
enum class filter_order : std::uint8_t {
    temperature_first, ///< temperature, top-k, top-p, min-p (Hugging Face, vLLM)
    temperature_last,  ///< top-k, top-p, min-p, temperature (llama.cpp)
};

/// How one row's token is drawn.
///
/// Penalties, on a token's logit l: repetition r, for tokens of prompt and output: l > 0 ? l / r : l * r (Hugging Face,
/// arXiv:1909.05858); then (l - frequency * count) - presence, for tokens with count > 0, the output only (OpenAI,
/// vLLM). Biases are added afterwards.
///
/// Filters. Tokens are ranked by logit, ties by lower id. Top-k keeps the first k. A token's weight is
/// exp((l - max) / temperature), without the temperature if that comes last; top-p keeps the shortest prefix whose
/// weight is at least top_p of all that top-k kept, weights counted in units of 2^-40 so that the sum has no order.
/// Min-p keeps weights of at least min_p times the largest. The first of the ranking is always kept.
///
/// Draw: the kept token with the largest (l - max) / temperature - log(-log(u)) (Gumbel-max), u keyed by (seed,
/// sequence, position, token id) alone, so that a request's tokens do not depend on its batch.
struct sample_params {
    float temperature = 0;  ///< below 1e-6: the largest logit, ties to the lowest id
    std::int32_t top_k = 0; ///< 0: off
    float top_p = 1;        ///< 1: off
    float min_p = 0;        ///< 0: off
    float repetition_penalty = 1;
    float presence_penalty = 0;
    float frequency_penalty = 0;
    filter_order order = filter_order::temperature_first;
    std::uint64_t seed = 0;
    std::uint64_t sequence = 0; ///< tells apart the answers that share a seed
    std::int32_t position = 0;
    /// -1: no log-probabilities. Otherwise that of the token and this many of the best, at most `max_top_logprobs`.
    std::int32_t top_logprobs = -1;
    std::int32_t seen_count = 0;
    std::int32_t bias_count = 0;
    seen_token const* seen = nullptr;
    token_bias const* biases = nullptr;
};

inline constexpr std::int32_t max_top_logprobs = 64;

/// A token and the logarithm of its probability: the log-softmax of the raw logits, before penalties and biases.
/// It is l - max - log(sum), sum over exp(l - max) in 16 lanes (token % 16, ascending), then `sum_lanes`.
struct token_logprob {
    std::int32_t token = 0;
    float logprob = 0;
};

/// Draws a token for each row. The logits are used up: penalties and biases are applied in place.
/// Where a logit is NaN, the largest is +infinity or all are -infinity, the token is -1 and log-probabilities are NaN.
/// Ids outside the vocabulary in `seen` and `biases` are ignored. A row with more than 2^17 of them has NaN as its
/// token's log-probability: there is no room to remember so many raw logits.
struct sample_args {
    float* logits = nullptr;
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;           ///< up to 2^22
    std::int64_t stride = 0;               ///< floats from one row of logits to the next
    sample_params const* params = nullptr; ///< one a row
    std::int32_t* tokens = nullptr;
    float* logprobs = nullptr;    ///< one a row, or null if no row asks
    token_logprob* top = nullptr; ///< `top_stride` a row, best first, or null; unused entries get token -1
    std::int64_t top_stride = 0;
};

/// The log-probability of a given token for each row, as token_logprob defines it. NaN where a logit is NaN, the
/// largest is +infinity or all are -infinity.
struct score_args {
    float const* logits = nullptr; ///< rows × vocabulary, F32
    std::int64_t rows = 0;
    std::int64_t vocabulary = 0;          ///< up to 2^22
    std::int32_t const* tokens = nullptr; ///< one a row, of the vocabulary
    float* logprobs = nullptr;            ///< one a row
};

/// What a draw chooses from: the tokens of the ranking down to (`lowest`, `last_token`), and how it weighs them.
struct draw_range {
    float max = 0;
    float inverse_temperature = 1;
    float lowest = 0;            ///< the smallest logit that is kept, never -infinity
    std::int32_t last_token = 0; ///< of the tokens with that logit, the highest id that is kept

    bool keeps(float logit, std::int32_t token) const noexcept
    {
        return logit > lowest || (logit == lowest && token <= last_token);
    }
};

/// The parts of the sampler that read a whole row, one version for each instruction set.
struct sample_kernels {
    /// Writes the largest logit of each 64 tokens to `maxima`; false if a logit is NaN.
    bool (*block_maxima)(float const* logits, std::int64_t vocabulary, float* maxima) noexcept;
    /// The sum of exp(l - max), as `token_logprob` defines it.
    float (*exp_sum)(float const* logits, std::int64_t vocabulary, float max) noexcept;
    /// units[i] = exp((l - max) * inverse_temperature) in units of 2^-40, ties to even, for `count` tokens, at most 64.
    void (*weigh)(float const* logits, std::int64_t count, float max, float inverse_temperature,
                  std::int64_t* units) noexcept;
    /// A bit for each of `count` tokens, at most 64, whose logit is neither below `lowest`, which is finite, nor above
    /// `highest`.
    std::uint64_t (*match)(float const* logits, std::int64_t count, float lowest, float highest) noexcept;
    /// The draw; `maxima` lets it pass over blocks that can't win. -1 if nothing is kept.
    std::int32_t (*draw)(float const* logits, std::int64_t vocabulary, float const* maxima, draw_range const& range,
                         sample_params const& params) noexcept;
};

namespace scalar {
extern sample_kernels const sampling;
}
namespace avx2 {
extern sample_kernels const sampling;
}
namespace avx512 {
extern sample_kernels const sampling;
}

/// The operation on top of one set of kernels.
void sample(sample_kernels const& kernels, sample_args const& args, share part);
void score(sample_kernels const& kernels, score_args const& args, share part);

} // namespace plait::host
