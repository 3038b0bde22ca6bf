#pragma once

#include <string>
#include <vector>

namespace plait {

/// A tool that the model asks for.
struct tool_call {
    std::string name;
    std::string arguments; ///< a JSON object; empty: one without members
    std::string id;        ///< the model's own, or `call00000`, `call00001`, ...

    friend bool operator==(tool_call const&, tool_call const&) = default;
};

/// `{"name": ..., "arguments": {...}, "id": ...}` on one line. Throws error(errc::invalid_argument) naming the member
/// that is not UTF-8 or no JSON object.
std::string to_json(tool_call const& call);

/// One turn of a conversation. What an answer came in, `reasoning`, `content` and `calls`, is what the turn of the
/// assistant holds afterwards; each call is then answered by a turn of role "tool" with its `call_id`.
struct chat_message {
    std::string role; ///< "system", "user", "assistant", "tool", ...
    std::string content;
    std::string reasoning{};        ///< templates show it as their models expect: within a chain of calls, or never
    std::vector<tool_call> calls{}; ///< that the assistant makes
    std::string call_id{};          ///< of a tool's result: tool_call::id
};

} // namespace plait
