#include <algorithm>
#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/parser.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/turns.hpp>

namespace plait {

struct chat_template::program {
    std::string source;
    template_limits limits;
    jinja::block body;
};

namespace {

/// Some failures quote the template, and raise_exception says what it likes.
constexpr std::size_t longest_message = 1000;

[[noreturn]] void fail_at(jinja::place where, std::string_view what)
{
    auto const shown = what.substr(0, jinja::offset_of(what, longest_message));
    throw error(errc::template_failed, "chat template, line " + std::to_string(where.line) + ", column " +
                                           std::to_string(where.column) + ": " + std::string(shown) +
                                           (shown.size() < what.size() ? "..." : ""));
}

[[noreturn]] void refuse(std::string const& field, char const* what)
{
    throw error(errc::invalid_argument, field + ": " + what);
}

jinja::value text(jinja::budget& b, std::string const& s, std::string const& field)
{
    if (!jinja::valid_utf8(s)) refuse(field, "not valid UTF-8");
    return jinja::make_text(b, s);
}

jinja::value json(jinja::budget& b, std::string const& s, std::string const& field)
{
    try {
        return jinja::parse_json(b, s);
    } catch (jinja::failure const& f) {
        refuse(field, f.what());
    }
}

/// Whether a role is a word, as roles are; it may be a part of a control token, as in `<|{{ role }}|>`.
bool plain_name(std::string_view s)
{
    return s.size() <= 64 && std::all_of(s.begin(), s.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-';
           });
}

/// The messages with roles that are the program's choice, not a user's text, marked as such.
jinja::value with_roles(jinja::budget& b, jinja::value const& messages)
{
    std::vector<jinja::value> items;
    items.reserve(messages.items().items.size());
    for (auto const& message : messages.items().items) {
        auto const* role = message.is_mapping() ? message.members().find("role") : nullptr;
        if (role == nullptr || !role->is_string() || !plain_name(role->string().bytes)) {
            items.push_back(message);
            continue;
        }
        jinja::derivation const own(b, false);
        auto const name = jinja::make_text(b, role->string().bytes);
        jinja::mapping m;
        for (auto const& [key, item] : message.members().items)
            m.put(b, key, key.is_string() && key.string().bytes == "role" ? name : item);
        items.push_back(jinja::make_mapping(b, std::move(m)));
    }
    return jinja::make_sequence(b, messages.items().kind, std::move(items));
}

using variables = std::vector<std::pair<std::string_view, jinja::value>>;

/// Views in the result point into literals and into `extra`, which must outlive it.
variables visible(jinja::budget& b, render_input const& input, call_form how, jinja::value const& extra)
{
    auto messages =
        input.messages_json.empty() ? turns_of(b, input.messages, how) : json(b, input.messages_json, "messages_json");
    if (!messages.is_sequence()) refuse("messages_json", "not an array");
    messages = with_roles(b, messages);
    auto tools = input.tools_json.empty() ? jinja::value(jinja::none{}) : json(b, input.tools_json, "tools_json");
    if (!tools.is_sequence() && !tools.is_none()) refuse("tools_json", "not an array");

    variables all;
    all.emplace_back("messages", std::move(messages));
    all.emplace_back("tools", std::move(tools));
    all.emplace_back("documents", jinja::none{});
    all.emplace_back("add_generation_prompt", input.add_generation_prompt);
    {
        jinja::derivation const own(b, false);
        all.emplace_back("bos_token", text(b, input.bos_token, "bos_token"));
        all.emplace_back("eos_token", text(b, input.eos_token, "eos_token"));
    }
    if (input.think) { // by the name that Qwen's, GLM's and SmolLM3's templates have for it, and Granite's and
                       // DeepSeek's
        all.emplace_back("enable_thinking", *input.think);
        all.emplace_back("thinking", *input.think);
    }
    if (extra.is_none()) return all;
    if (!extra.is_mapping()) refuse("extra_json", "not an object");
    // They replace what is there already, as keyword arguments would.
    for (auto const& [key, item] : extra.members().items) {
        b.step(all.size() / 8);
        std::string_view const name = key.string().bytes;
        auto const at = std::find_if(all.begin(), all.end(), [&](auto const& v) { return v.first == name; });
        if (at != all.end())
            at->second = item;
        else
            all.emplace_back(name, item);
    }
    return all;
}

} // namespace

chat_template chat_template::parse(std::string source, template_limits limits)
{
    if (source.size() > limits.source_bytes) {
        throw error(errc::template_failed, "chat template: " + std::to_string(source.size()) +
                                               " bytes are more than the limit of " +
                                               std::to_string(limits.source_bytes));
    }
    if (!jinja::valid_utf8(source)) throw error(errc::template_failed, "chat template: not valid UTF-8");
    auto p = std::make_shared<program>();
    jinja::place where;
    try {
        p->body = jinja::parse(source, limits, where);
    } catch (jinja::failure const& f) {
        fail_at(where, f.what());
    }
    p->source = std::move(source);
    p->limits = limits;
    return chat_template(std::move(p));
}

rendered_prompt chat_template::render_parts(render_input const& input) const
{
    bool const calls = input.messages_json.empty() && std::any_of(input.messages.begin(), input.messages.end(),
                                                                  [](auto const& m) { return !m.calls.empty(); });
    return render_as(input, calls ? form_of_calls(input) : call_form{});
}

call_form chat_template::form_of_calls(render_input const& input) const
{
    auto example = input;
    example.messages = conversation_with_call();
    constexpr call_form forms[] = {
        {}, {.null_content = true}, {.text_arguments = true, .null_content = true}, {.text_arguments = true}};
    for (auto const how : forms) {
        try {
            if (shows_call(render_as(example, how).text)) return how;
        } catch (error const& e) {
            if (e.condition() != errc::template_failed) throw;
        }
    }
    return {.in_content = true};
}

rendered_prompt chat_template::render_as(render_input const& input, call_form how) const
{
    jinja::budget budget(program_->limits);
    jinja::value extra = jinja::none{};
    jinja::interpreter interpreter(budget, input.now);
    try {
        auto all = [&] {
            jinja::derivation const theirs(budget, true);
            if (!input.extra_json.empty()) extra = json(budget, input.extra_json, "extra_json");
            return visible(budget, input, how, extra);
        }();
        auto out = interpreter.render(program_->body, std::move(all));
        rendered_prompt prompt{out.take_bytes(), {}};
        auto const foreign = out.take_foreign();
        prompt.trusted.reserve(foreign.size() + 1);
        std::size_t at = 0;
        for (auto const& r : foreign) {
            if (r.begin > at) prompt.trusted.push_back({at, r.begin});
            at = r.end;
        }
        if (at < prompt.text.size()) prompt.trusted.push_back({at, prompt.text.size()});
        return prompt;
    } catch (jinja::failure const& f) {
        fail_at(interpreter.where(), f.what());
    }
}

std::string chat_template::render(render_input const& input) const
{
    return render_parts(input).text;
}

std::string const& chat_template::source() const noexcept
{
    return program_->source;
}

} // namespace plait
