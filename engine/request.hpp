#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <plait/actors/time/clock.hpp>
#include <plait/kernels/host/sample.hpp>
#include <plait/model/chat/answer_parser.hpp>
#include <plait/model/chat/chat_template.hpp>

namespace plait {

using host::filter_order;

/// How the next token is drawn. The defaults sample from the model's own distribution.
///
/// The filters run in this order (`filter_order::temperature_first`, as Hugging Face and vLLM): penalties, logit bias,
/// temperature, top-k, top-p, min-p. `filter_order::temperature_last`, llama.cpp's, puts the temperature last, so that
/// top-p and min-p see the distribution before it is flattened or sharpened.
struct sampling_options {
    float temperature = 1.0f;        ///< 0 takes the most likely token (greedy); finite, >= 0
    std::int32_t top_k = 0;          ///< keep the k most likely; 0 = all
    float top_p = 1.0f;              ///< keep the smallest set with this much probability; in (0, 1]
    float min_p = 0.0f;              ///< keep tokens at least this likely relative to the best; in [0, 1]
    float repetition_penalty = 1.0f; ///< > 1 discourages tokens of prompt and answer (Keskar et al., CTRL, 2019); > 0
    float presence_penalty = 0.0f;   ///< subtracted from the logit of a token that the answer has; in [-2, 2]
    float frequency_penalty = 0.0f;  ///< subtracted as often as the answer has the token; in [-2, 2]
    std::vector<std::pair<std::int32_t, float>> logit_bias; ///< token id, added to its logit; in [-100, 100]
    std::optional<std::uint64_t> seed;                      ///< none: one from the runtime
    filter_order order = filter_order::temperature_first;
};

/// One request. The prompt is the first of `tokens`, `messages` (through the model's chat template) and `text` that is
/// not empty.
struct request {
    std::vector<std::int32_t> tokens;
    std::vector<chat_message> messages;
    std::string tools_json; ///< with messages: an array of the tools offered, as OpenAI describes them; empty: none
    /// With messages: whether the model thinks first, where its template leaves that open; none: as the template has
    /// it.
    std::optional<bool> think;
    std::string extra_json; ///< with messages: an object of further variables of the template, or empty
    std::optional<std::chrono::sys_seconds> date; ///< for a chat template that asks; none: now, by the runtime's clock
    std::string text; ///< tokenised as it stands; special tokens are recognised where `parse_special` says so
    bool parse_special = false;

    sampling_options sampling;
    std::int64_t max_tokens = 0;   ///< longest answer; 0: until the end of the context
    std::int32_t choices = 1;      ///< answers to the same prompt (OpenAI's n), 1 to 64
    std::vector<std::string> stop; ///< end an answer as the model writes it; 64 of 4096 bytes at most, never shown
    std::vector<std::int32_t> stop_tokens; ///< tokens that end an answer besides the model's own; never shown
    bool ignore_end = false;               ///< the model's own end-of-generation tokens are ordinary tokens
    std::optional<std::int32_t> logprobs;  ///< log-probabilities of each token and of the most likely 0 to 20
    /// How the answer is divided into its parts; `answer_style{}`: it is not, all of it is text. None: the answer to
    /// messages as the markers in the model's template say, calls only where tools are offered or were called; other
    /// answers not.
    std::optional<answer_style> style;

    std::optional<duration> timeout; ///< from submit to the end; the answer so far stands
    std::int32_t priority = 0;       ///< greater is more urgent, to policies that look at it
    std::string tenant;              ///< whose request it is, to policies that look at it
};

/// Which hidden states of a prompt make its embedding.
enum class pooling : std::uint8_t {
    mean,  ///< of all tokens
    last,  ///< the last token's, which has seen all others
    first, ///< the first token's: of models that were trained to put it there (BERT's CLS)
};

/// Why an answer ended.
enum class finish_reason : std::uint8_t {
    none,      ///< it has not
    stop,      ///< an end-of-generation token, a stop token or a stop string
    length,    ///< max_tokens, or the end of the context
    cancelled, ///< the caller stopped it
    deadline,  ///< its timeout passed
    failed,    ///< summary::failure says why
};

std::string_view name(finish_reason reason) noexcept;

/// A token of an answer.
struct token_info {
    std::int32_t id = 0;
    float logprob = 0;                               ///< log of the model's probability, before any filter
    std::vector<std::pair<std::int32_t, float>> top; ///< the most likely tokens of this place, most likely first
};

/// What `generation::next` yields: new parts of one choice, complete in UTF-8, with the tokens that were written since
/// the piece before. What could still become a stop string, a character or a marker is held back, and a call until its
/// end, so a piece may have tokens without text. All pieces together have the parts of the whole answer. The last piece
/// of a choice has its finish reason.
struct piece : answer_parts {
    std::int32_t choice = 0;
    std::vector<token_info> tokens; ///< logprobs only where the request asked for them
    finish_reason finish = finish_reason::none;
};

/// How one choice ended.
struct choice_summary {
    finish_reason finish = finish_reason::none;
    std::int64_t tokens = 0; ///< generated, the end-of-generation token included
    std::string stopped_by;  ///< the stop string, if one ended it
};

/// What a request cost.
struct summary {
    std::int64_t prompt_tokens = 0;
    std::int64_t generated_tokens = 0; ///< of all choices
    std::vector<choice_summary> choices;
    duration queued{};              ///< from submit to the first step
    duration time_to_first_token{}; ///< from submit
    duration total{};               ///< from submit to the end
    std::int32_t preemptions = 0;
    std::error_code failure; ///< why a choice failed
};

} // namespace plait
