#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <plait/engine/engine.hpp>
#include <plait/engine/request.hpp>
#include <plait/engine/sequence.hpp>

namespace plait {

/// The prompt of a request: its tokens, its messages through the chat template, or its text. Throws
/// error(errc::invalid_argument) for an empty prompt or an id outside the vocabulary, errc::unsupported for messages to
/// a model without a template, errc::template_failed. `today`: for a request that brings no date.
std::vector<std::int32_t> prompt_tokens(request const& what, engine_info const& model, std::chrono::sys_seconds today);

/// The control tokens that are markers of a style. Takes time linear in the vocabulary.
std::vector<std::int32_t> marker_tokens(tokenizer const& text, answer_style style);

/// How the answer to a request is divided; `prompt`: what prompt_tokens has made of it.
answer_plan plan_answer(request const& what, std::span<std::int32_t const> prompt, engine_info const& model);

/// Checks every parameter of a request and gives what the scheduler needs. Throws error(errc::invalid_argument) naming
/// the parameter, error(errc::never_fits) when the prompt leaves no room in the context for an answer, where one is
/// wanted, error(errc::unsupported) for scores of a model whose prompts see all of themselves.
std::shared_ptr<sequence_request> check_request(request const& what, std::int64_t prompt, engine_info const& model,
                                                time_point now, std::uint64_t random_seed,
                                                reading read = reading::none);

} // namespace plait
