#include <algorithm>
#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/chat/jinja/interpreter.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/parser.hpp>
#include <plait/model/chat/jinja/text.hpp>

namespace plait {

struct chat_template::program {
    std::string source;
    template_limits limits;
    jinja::block body;
};

namespace {

/// Some failures quote the template, and raise_exception says what it likes.
constexpr std::size_t longest_message = 1000;

[[noreturn]] void fail_at(int line, std::string_view what)
{
    auto const shown = what.substr(0, jinja::offset_of(what, longest_message));
    throw error(errc::template_failed, "chat template, line " + std::to_string(line) + ": " + std::string(shown) +
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

jinja::value turns(jinja::budget& b, std::vector<chat_message> const& messages)
{
    auto const role = jinja::make_text(b, "role");
    auto const content = jinja::make_text(b, "content");
    std::vector<jinja::value> items;
    items.reserve(messages.size());
    for (auto const& message : messages) {
        auto const field = "messages[" + std::to_string(items.size()) + "]";
        jinja::mapping m;
        m.put(b, role, text(b, message.role, field + ".role"));
        m.put(b, content, text(b, message.content, field + ".content"));
        items.push_back(jinja::make_mapping(b, std::move(m)));
    }
    return jinja::make_sequence(b, jinja::sequence_kind::list, std::move(items));
}

using variables = std::vector<std::pair<std::string_view, jinja::value>>;

/// Views in the result point into literals and into `extra`, which must outlive it.
variables visible(jinja::budget& b, render_input const& input, jinja::value const& extra)
{
    auto messages =
        input.messages_json.empty() ? turns(b, input.messages) : json(b, input.messages_json, "messages_json");
    if (!messages.is_sequence()) refuse("messages_json", "not an array");
    auto tools = input.tools_json.empty() ? jinja::value(jinja::none{}) : json(b, input.tools_json, "tools_json");
    if (!tools.is_sequence() && !tools.is_none()) refuse("tools_json", "not an array");

    variables all;
    all.emplace_back("messages", std::move(messages));
    all.emplace_back("tools", std::move(tools));
    all.emplace_back("documents", jinja::none{});
    all.emplace_back("add_generation_prompt", input.add_generation_prompt);
    all.emplace_back("bos_token", text(b, input.bos_token, "bos_token"));
    all.emplace_back("eos_token", text(b, input.eos_token, "eos_token"));
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
    int line = 1;
    try {
        p->body = jinja::parse(source, limits, line);
    } catch (jinja::failure const& f) {
        fail_at(line, f.what());
    }
    p->source = std::move(source);
    p->limits = limits;
    return chat_template(std::move(p));
}

std::string chat_template::render(render_input const& input) const
{
    jinja::budget budget(program_->limits);
    jinja::value extra = jinja::none{};
    jinja::interpreter interpreter(budget, input.now);
    try {
        if (!input.extra_json.empty()) extra = json(budget, input.extra_json, "extra_json");
        return interpreter.render(program_->body, visible(budget, input, extra));
    } catch (jinja::failure const& f) {
        fail_at(interpreter.line(), f.what());
    }
}

std::string const& chat_template::source() const noexcept
{
    return program_->source;
}

} // namespace plait
