#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <plait/model/chat/jinja/limits.hpp>
#include <plait/model/chat/message.hpp>
#include <plait/model/text/byte_range.hpp>
#include <string>
#include <vector>

namespace plait {

struct call_form;

/// What a template sees, by the names that Hugging Face gives them. The members that end in `_json` are JSON in UTF-8.
struct render_input {
    std::vector<chat_message> messages;
    std::string messages_json;         ///< an array used instead of `messages` unless empty: handed on as it is
    bool add_generation_prompt = true; ///< end with the beginning of the assistant's turn
    std::string tools_json;            ///< an array of the tools offered; empty: none
    std::optional<bool> think;         ///< the variables `enable_thinking` and `thinking`, where given
    std::string extra_json; ///< an object of further variables (`reasoning_effort`, `documents`, ...), or empty
    std::string bos_token;
    std::string eos_token;
    /// What `strftime_now` formats: the wall clock of the zone it should show. Rendering never reads a clock; a
    /// template that asks for the date when there is none fails.
    std::optional<std::chrono::sys_seconds> now{};
};

/// A prompt, and which of its bytes can be trusted.
struct rendered_prompt {
    std::string text;
    /// What the template itself wrote, with `bos_token`, `eos_token` and roles that are plain names; ascending, apart.
    /// Everything else comes from the conversation, whatever filters it passed on the way.
    std::vector<byte_range> trusted;
};

/// A chat template: the Jinja program inside a model file that turns a conversation into a prompt.
///
/// Understands what published templates use and renders it as Python's jinja2 does with `trim_blocks`,
/// `lstrip_blocks`, the loop controls, and `raise_exception`, `strftime_now` and `tojson` as Hugging Face defines them;
/// the reference is ImmutableSandboxedEnvironment of jinja2 3.1. Not there: template inheritance, include and import,
/// recursive loops, integers beyond 64 bits. A template is bounded by `template_limits` and reaches nothing of the
/// host.
class chat_template {
public:
    /// Throws `error(errc::template_failed, ...)` with line and column of the first mistake in `source`.
    static chat_template parse(std::string source, template_limits limits = {});

    /// The prompt. Safe to call from several threads at once. Throws `error(errc::template_failed, ...)` with line
    /// and column for whatever jinja2 raises, for `raise_exception` with its message, and for a limit that is passed;
    /// `error(errc::invalid_argument, ...)` naming the field of `input` that is not UTF-8 or of the wrong shape.
    std::string render(render_input const& input) const;

    /// The same, with what is the template's own told from what came with `input`. Only there may control tokens be
    /// looked for: a user who writes `<|im_end|>` has not ended a turn. Errors as `render`.
    ///
    /// Of `messages` with calls it learns first, from a short conversation of its own, in which form the template takes
    /// them: templates that were written for one client want arguments as text, or a turn without content.
    rendered_prompt render_parts(render_input const& input) const;

    /// The text it was parsed from.
    std::string const& source() const noexcept;

private:
    struct program;
    rendered_prompt render_as(render_input const& input, call_form how) const;
    call_form form_of_calls(render_input const& input) const;
    explicit chat_template(std::shared_ptr<program const> p)
        : program_(std::move(p))
    {
    }

    std::shared_ptr<program const> program_;
};

} // namespace plait
