#include <map>
#include <plait/actors/error.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/turns.hpp>
#include <utility>

namespace plait {

namespace {

[[noreturn]] void refuse(std::string const& field, char const* what)
{
    throw error(errc::invalid_argument, field + ": " + what);
}

jinja::value text(jinja::budget& b, std::string const& s, std::string const& field)
{
    if (!jinja::valid_utf8(s)) refuse(field, "not valid UTF-8");
    return jinja::make_text(b, s);
}

jinja::value object(jinja::budget& b, std::string const& json, std::string const& field)
{
    try {
        auto read = jinja::parse_json(b, json.empty() ? "{}" : json);
        if (!read.is_mapping()) refuse(field, "not a JSON object");
        return read;
    } catch (jinja::failure const& f) {
        refuse(field, f.what());
    }
}

jinja::value list(jinja::budget& b, std::vector<jinja::value> items)
{
    return jinja::make_sequence(b, jinja::sequence_kind::list, std::move(items));
}

jinja::value function_of(jinja::budget& b, tool_call const& call, std::string const& field, bool as_text)
{
    auto arguments = object(b, call.arguments, field + ".arguments");
    if (as_text) arguments = jinja::make_text(b, jinja::dump_json(b, arguments, {}));
    jinja::mapping m;
    m.put(b, jinja::make_text(b, "name"), text(b, call.name, field + ".name"));
    m.put(b, jinja::make_text(b, "arguments"), std::move(arguments));
    return jinja::make_mapping(b, std::move(m));
}

jinja::value calls_of(jinja::budget& b, chat_message const& message, std::string const& field, bool as_text)
{
    std::vector<jinja::value> items;
    items.reserve(message.calls.size());
    for (auto const& call : message.calls) {
        auto const name = field + ".calls[" + std::to_string(items.size()) + "]";
        jinja::mapping m;
        m.put(b, jinja::make_text(b, "id"), text(b, call.id, name + ".id"));
        m.put(b, jinja::make_text(b, "type"), jinja::make_text(b, "function"));
        m.put(b, jinja::make_text(b, "function"), function_of(b, call, name, as_text));
        items.push_back(jinja::make_mapping(b, std::move(m)));
    }
    return list(b, std::move(items));
}

/// The text of a turn with its calls behind it, in the form that most models write.
std::string with_calls(jinja::budget& b, chat_message const& message, std::string const& field)
{
    auto out = message.content;
    for (std::size_t i = 0; i < message.calls.size(); ++i) {
        auto const name = field + ".calls[" + std::to_string(i) + "]";
        auto const call = function_of(b, message.calls[i], name, false);
        out += (out.empty() ? "" : "\n") + ("<tool_call>\n" + jinja::dump_json(b, call, {})) + "\n</tool_call>";
    }
    return out;
}

} // namespace

std::string to_json(tool_call const& call)
{
    jinja::budget b(template_limits{});
    try {
        jinja::mapping m;
        m.put(b, jinja::make_text(b, "name"), text(b, call.name, "name"));
        m.put(b, jinja::make_text(b, "arguments"), object(b, call.arguments, "arguments"));
        m.put(b, jinja::make_text(b, "id"), text(b, call.id, "id"));
        return jinja::dump_json(b, jinja::make_mapping(b, std::move(m)), {});
    } catch (jinja::failure const& f) {
        refuse("arguments", f.what());
    }
}

jinja::value turns_of(jinja::budget& b, std::vector<chat_message> const& messages, call_form how)
{
    std::vector<jinja::value> items;
    items.reserve(messages.size());
    std::map<std::string_view, std::string const*> names; // of the tools called so far, by the call's identifier
    for (auto const& message : messages) {
        auto const field = "messages[" + std::to_string(items.size()) + "]";
        auto const calls = !message.calls.empty();
        auto content = text(b, message.content, field + ".content");
        if (calls && how.in_content) content = jinja::make_text(b, with_calls(b, message, field));
        if (calls && how.null_content) content = jinja::none{};

        jinja::mapping m;
        m.put(b, jinja::make_text(b, "role"), text(b, message.role, field + ".role"));
        m.put(b, jinja::make_text(b, "content"), std::move(content));
        if (!message.reasoning.empty()) {
            auto const reasoning = text(b, message.reasoning, field + ".reasoning");
            m.put(b, jinja::make_text(b, "reasoning_content"), reasoning);
            // gpt-oss takes a text beside calls for thoughts, and refuses both.
            if (!calls || message.content.empty()) m.put(b, jinja::make_text(b, "thinking"), reasoning);
        }
        if (calls && !how.in_content)
            m.put(b, jinja::make_text(b, "tool_calls"), calls_of(b, message, field, how.text_arguments));
        if (!message.call_id.empty()) {
            m.put(b, jinja::make_text(b, "tool_call_id"), text(b, message.call_id, field + ".call_id"));
            auto const call = names.find(message.call_id);
            if (call != names.end()) m.put(b, jinja::make_text(b, "name"), jinja::make_text(b, *call->second));
        }
        for (auto const& call : message.calls)
            names[call.id] = &call.name;
        items.push_back(jinja::make_mapping(b, std::move(m)));
    }
    return list(b, std::move(items));
}

std::vector<chat_message> conversation_with_call()
{
    std::vector<chat_message> out(3);
    out[0].role = "user";
    out[0].content = "question";
    out[1].role = "assistant";
    out[1].calls.push_back({"plait_tool", R"({"of": "plait_value"})", "plait0000"}); // nine letters, for Mistral
    out[2].role = "tool";
    out[2].content = "result";
    out[2].call_id = "plait0000";
    return out;
}

bool shows_call(std::string_view prompt) noexcept
{
    auto const has = [prompt](std::string_view part) { return prompt.find(part) != prompt.npos; };
    return has("plait_tool") && has("plait_value") && !has("\\\"plait_value"); // a string in a string
}

} // namespace plait
