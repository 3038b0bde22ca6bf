#pragma once

#include <plait/model/model_spec.hpp>

#include <string_view>

namespace plait {

/// The chat template of a model whose files have none because its authors wrote the prompt in code: ChatGLM-6B and
/// ChatGLM2-6B. Empty for every other model: those without a template continue a text.
/// Source: `build_prompt` and `chat` of THUDM's modeling_chatglm.py for each.
std::string_view builtin_template(model_spec const& spec) noexcept;

} // namespace plait
