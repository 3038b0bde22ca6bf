#pragma once

#include <plait/model/chat/jinja/budget.hpp>
#include <plait/model/chat/jinja/value.hpp>
#include <plait/model/chat/message.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// How a template wants turns with calls of tools. Published ones differ where they are written for one client.
struct call_form {
    bool text_arguments = false; ///< JSON as a string, not an object (DeepSeek)
    bool null_content = false;   ///< a turn with calls has no text (DeepSeek)
    bool in_content = false;     ///< there is no place for calls: they stand in the text (SmolLM3, Granite 3.3)
};

/// The messages as Hugging Face names their parts: `tool_calls`, `tool_call_id`, `name`, and for reasoning both
/// `reasoning_content` and `thinking`. Throws error(errc::invalid_argument) naming what is not UTF-8 or no JSON object.
jinja::value turns_of(jinja::budget& b, std::vector<chat_message> const& messages, call_form how);

/// A conversation with a call in it, and whether a prompt that a template has made of it shows the call.
std::vector<chat_message> conversation_with_call();
bool shows_call(std::string_view prompt) noexcept;

} // namespace plait
