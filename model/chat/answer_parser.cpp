#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <plait/model/chat/answer_parser.hpp>
#include <plait/model/chat/jinja/json.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <utility>

namespace plait {

namespace {

using calls = answer_style::calls;
using reasoning = answer_style::reasoning;

constexpr std::string_view spaces = " \t\r\n";

namespace deepseek {

constexpr std::string_view block_begin = "<｜tool▁calls▁begin｜>", block_end = "<｜tool▁calls▁end｜>";
constexpr std::string_view call_begin = "<｜tool▁call▁begin｜>", call_end = "<｜tool▁call▁end｜>";
constexpr std::string_view separator = "<｜tool▁sep｜>";

} // namespace deepseek

bool has(std::string_view text, std::string_view part) noexcept
{
    return text.find(part) != std::string_view::npos;
}

struct found {
    std::size_t at = 0;    ///< before it there is no marker, and none that could begin
    std::string_view what; ///< empty: none of them is complete there
};

/// The first of `markers` in `text`. Where what follows could complete one that begins earlier, that place comes first.
found find_marker(std::string_view text, std::initializer_list<std::string_view> markers, bool last)
{
    found best{text.size(), {}};
    for (auto const m : markers) {
        auto const at = text.find(m);
        if (at < best.at) best = {at, m};
        if (last) continue;
        for (std::size_t n = std::min(m.size() - 1, text.size()); n > 0; --n) {
            if (!text.ends_with(m.substr(0, n))) continue;
            if (text.size() - n < best.at) best = {text.size() - n, {}};
            break;
        }
    }
    return best;
}

/// Whether `text` could become, or is, one that begins with `marker`.
bool may_begin(std::string_view text, std::string_view marker)
{
    return marker.starts_with(text.substr(0, marker.size()));
}

std::string_view trimmed(std::string_view text)
{
    auto const from = text.find_first_not_of(spaces);
    if (from == std::string_view::npos) return {};
    return text.substr(from, text.find_last_not_of(spaces) - from + 1);
}

template_limits json_limits()
{
    template_limits limits;
    limits.depth = 64;
    limits.memory_bytes = 64 * answer_parser::longest_call;
    return limits;
}

} // namespace

answer_style answer_style_of(std::string_view source) noexcept
{
    answer_style out;
    if (has(source, "<|channel|>") && has(source, "<|message|>")) return {reasoning::harmony, calls::harmony};
    if (has(source, "<think>") || has(source, "</think>"))
        out.thoughts = has(source, "<response>") ? reasoning::response : reasoning::think;
    if (has(source, "<arg_key>"))
        out.tools = calls::glm;
    else if (has(source, deepseek::block_begin))
        out.tools = calls::deepseek;
    else if (has(source, "[TOOL_CALLS]"))
        out.tools = calls::mistral;
    else if (has(source, "<|tool_call|>"))
        out.tools = calls::granite;
    else if (has(source, "<tool_call>"))
        out.tools = calls::hermes;
    else if (has(source, "Action:") && has(source, "tool_name"))
        out.tools = calls::command_r;
    else if (has(source, "<|python_tag|>") || (has(source, "\"parameters\"") && has(source, "ipython")))
        out.tools = calls::llama;
    return out;
}

std::vector<std::string_view> markers_of(answer_style style)
{
    std::vector<std::string_view> out;
    auto const add = [&out](std::initializer_list<std::string_view> more) { out.insert(out.end(), more); };
    if (style.thoughts == reasoning::think || style.thoughts == reasoning::response) add({"<think>", "</think>"});
    if (style.thoughts == reasoning::response) add({"<response>", "</response>"});
    if (style.thoughts == reasoning::harmony || style.tools == calls::harmony)
        add({"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"});
    if (style.tools == calls::hermes || style.tools == calls::glm) add({"<tool_call>", "</tool_call>"});
    if (style.tools == calls::glm) add({"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"});
    if (style.tools == calls::llama) add({"<|python_tag|>"});
    if (style.tools == calls::mistral) add({"[TOOL_CALLS]"});
    if (style.tools == calls::granite) add({"<|tool_call|>"});
    if (style.tools == calls::deepseek)
        add({deepseek::block_begin, deepseek::call_begin, deepseek::separator, deepseek::call_end,
             deepseek::block_end});
    return out;
}

bool opens_thoughts(std::string_view prompt) noexcept
{
    auto const end = prompt.find_last_not_of(spaces);
    return end != std::string_view::npos && prompt.substr(0, end + 1).ends_with("<think>");
}

answer_parts& answer_parts::operator+=(answer_parts more)
{
    reasoning += more.reasoning;
    text += more.text;
    calls.insert(calls.end(), std::make_move_iterator(more.calls.begin()), std::make_move_iterator(more.calls.end()));
    malformed |= more.malformed;
    return *this;
}

answer_parser::answer_parser(answer_style style, bool inside_thoughts, std::size_t earlier_calls)
    : style_(style)
    , skip_space_(style != answer_style{})
    , count_(earlier_calls)
{
    if (style.thoughts == reasoning::harmony)
        state_ = state::header;
    else if (inside_thoughts && thinks())
        state_ = state::thoughts;
}

/// Whether thoughts are in a block of their own.
bool answer_parser::thinks() const noexcept
{
    return style_.thoughts == reasoning::think || style_.thoughts == reasoning::response;
}

answer_parts answer_parser::push(std::string_view piece)
{
    held_ += piece;
    while (step(false)) {
    }
    return std::exchange(out_, {});
}

answer_parts answer_parser::finish(bool whole)
{
    cut_off_ = !whole;
    while (step(true)) {
    }
    return std::exchange(out_, {});
}

/// Takes one step; false: nothing more can be said of what is held.
bool answer_parser::step(bool last)
{
    if (skip_space_) held_.erase(0, std::min(held_.find_first_not_of(spaces), held_.size()));
    // A call that was opened may end with nothing in it.
    if (held_.empty() && !(last && state_ == state::call)) return false;
    switch (state_) {
    case state::start:
        return at_start(last);
    case state::thoughts:
        return in_thoughts(last);
    case state::text:
        return in_text(last);
    case state::call:
        return in_call(last);
    case state::header:
        return in_header(last);
    }
    return false;
}

/// Some markers count only where an answer begins, so that it can speak of them.
bool answer_parser::at_start(bool last)
{
    std::string_view const text = held_;
    if (thinks()) {
        constexpr std::string_view open = "<think>";
        if (text.starts_with(open)) {
            held_.erase(0, open.size());
            state_ = state::thoughts;
            return true;
        }
        if (!last && may_begin(text, open)) return false;
    }
    state_ = state::text;
    if (style_.tools == calls::llama) {
        constexpr std::string_view tag = "<|python_tag|>";
        if (!last && may_begin(text, tag) && text.size() < tag.size()) {
            state_ = state::start;
            return false;
        }
        if (text.starts_with(tag))
            begin_call(tag, "");
        else if (text.front() == '{')
            begin_call("", "");
    } else if ((style_.tools == calls::mistral || style_.tools == calls::granite) && text.front() == '[') {
        // The marker is a control token that a stream may have left out.
        constexpr std::string_view tag = "[TOOL_CALLS]";
        if (!last && may_begin(text, tag) && text.size() < tag.size()) {
            state_ = state::start;
            return false;
        }
        if (text.starts_with("[{")) begin_call("", "");
    }
    return true;
}

bool answer_parser::in_thoughts(bool last)
{
    auto const next = find_marker(held_, {"</think>"}, last);
    if (next.at > 0) {
        out_.reasoning.append(held_, 0, next.at);
        skip_space_ = false;
    }
    held_.erase(0, next.at + next.what.size());
    if (next.what.empty()) return false;
    state_ = state::start; // of what the thoughts lead to: it can be a call
    skip_space_ = true;
    return true;
}

void answer_parser::show(std::size_t size)
{
    if (size == 0) return;
    (thinking_ ? out_.reasoning : out_.text).append(held_, 0, size);
    held_.erase(0, size);
    skip_space_ = false;
    called_ = false;
}

bool answer_parser::in_text(bool last)
{
    found next;
    switch (style_.tools) {
    case calls::hermes:
    case calls::glm:
        next = find_marker(held_, {"<tool_call>"}, last);
        break;
    case calls::mistral:
        next = find_marker(held_, {"[TOOL_CALLS]"}, last);
        break;
    case calls::granite:
        next = style_.thoughts == reasoning::response
                   ? find_marker(held_, {"<|tool_call|>", "<response>", "</response>"}, last)
                   : find_marker(held_, {"<|tool_call|>"}, last);
        break;
    case calls::command_r:
        next = find_marker(held_, {"Action: ```json", "Action:```json", "Action:\n```json"}, last);
        break;
    case calls::harmony:
        next = find_marker(held_, {"<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"}, last);
        break;
    case calls::llama:
        next = find_marker(held_, {"<|python_tag|>"}, last);
        break;
    case calls::deepseek:
        next = find_marker(held_, {deepseek::block_begin, deepseek::call_begin, deepseek::block_end}, last);
        break;
    case calls::none:
        next = style_.thoughts == reasoning::response ? find_marker(held_, {"<response>", "</response>"}, last)
                                                      : found{held_.size(), {}};
        break;
    }
    show(next.at);
    if (next.what.empty()) return false;
    std::string const marker(next.what);
    if (marker == "<response>" || marker == "</response>") {
        held_.erase(0, marker.size());
    } else if (marker == deepseek::block_end) {
        // Behind a call that is text, or behind none, it is text as well.
        if (called_)
            held_.erase(0, marker.size());
        else
            show(marker.size());
        called_ = false;
    } else if (style_.tools == calls::harmony) {
        if (marker != "<|channel|>" && marker != "<|start|>") held_.erase(0, marker.size());
        thinking_ = false;
        skip_space_ = true;
        state_ = state::header;
    } else {
        std::string_view const end = marker == "<tool_call>"           ? "</tool_call>"
                                     : marker.starts_with("Action")    ? "```"
                                     : style_.tools == calls::deepseek ? deepseek::call_end
                                                                       : "";
        begin_call(marker, end);
    }
    return true;
}

void answer_parser::begin_call(std::string_view marker, std::string_view end)
{
    opened_by_ = marker;
    call_end_ = end;
    held_.erase(0, marker.size());
    scanned_ = 0;
    skip_space_ = false;
    state_ = state::call;
}

/// The call is text after all; `size` bytes of what is held belong to it.
void answer_parser::give_up_call(std::size_t size)
{
    out_.malformed = true;
    out_.text += opened_by_;
    state_ = state::text;
    thinking_ = false;
    called_ = false;
    show(size);
}

bool answer_parser::in_call(bool last)
{
    std::string_view const text = held_;
    auto const rest = text.substr(scanned_);
    found next{rest.size(), {}};
    if (style_.tools == calls::harmony)
        next = find_marker(rest, {"<|call|>", "<|end|>", "<|return|>", "<|start|>"}, last);
    else if (style_.tools == calls::deepseek)
        next = find_marker(rest, {deepseek::call_end, deepseek::block_end}, last);
    else if (!call_end_.empty())
        next = find_marker(rest, {call_end_}, last);
    auto const end = scanned_ + next.at;
    bool const stays = next.what == "<|start|>" || next.what == deepseek::block_end; // it is not the call's alone
    auto const marker = stays ? 0 : next.what.size();
    scanned_ = end;
    if (end > longest_call) {
        give_up_call(longest_call);
        return true;
    }
    if (next.what.empty()) {
        if (!last) return false;
        // Of a call that was cut off before its arguments nobody knows that it has none.
        if (!call_end_.empty() || (cut_off_ && trimmed(text).empty())) {
            give_up_call(end);
            return true;
        }
    }
    if (!read_call(text.substr(0, end))) {
        give_up_call(style_.tools == calls::harmony ? end : end + marker);
        if (style_.tools == calls::harmony) state_ = state::text; // its end marker is next
        return true;
    }
    held_.erase(0, end + marker);
    state_ = style_.tools == calls::harmony ? state::header : state::text;
    skip_space_ = true;
    called_ = style_.tools == calls::deepseek;
    return true;
}

/// `<|start|>assistant<|channel|>NAME to=functions.x <|constrain|>json<|message|>`, any part of which may be missing.
bool answer_parser::in_header(bool last)
{
    constexpr std::size_t longest = 512;
    auto const next = find_marker(held_, {"<|message|>"}, last);
    bool const header = may_begin(held_, "<|start|>") || may_begin(held_, "<|channel|>") ||
                        may_begin(held_, "<|message|>") || may_begin(held_, "assistant") || may_begin(held_, "to=");
    if (header && next.what.empty() && !last && next.at <= longest) return false;
    if (!header || next.what.empty() || next.at > longest) { // text without channels
        thinking_ = false;
        state_ = state::text;
        // It stays as it is: what would begin a header again is no header.
        for (std::string_view const m : {"<|start|>", "<|channel|>"}) {
            if (!held_.starts_with(m)) continue;
            show(m.size());
            break;
        }
        return !held_.empty();
    }
    auto const words = std::string_view(held_).substr(0, next.at);
    thinking_ = has(words, "<|channel|>analysis");
    recipient_.clear();
    constexpr std::string_view to = "to=functions.";
    if (auto const at = words.find(to); at != std::string_view::npos) {
        auto const name = words.substr(at + to.size());
        recipient_ = name.substr(0, std::min(name.find_first_of(" \t\r\n<"), name.size()));
    }
    held_.erase(0, next.at + next.what.size());
    skip_space_ = true;
    state_ = state::text;
    if (!recipient_.empty()) {
        thinking_ = false;
        begin_call("", "");
    }
    return true;
}

bool answer_parser::add_call(tool_call call)
{
    if (call.name.empty()) return false;
    if (call.id.empty()) {
        // Nine letters and digits, which is what Mistral's templates take.
        auto number = std::to_string(count_ % 100'000);
        call.id = "call" + std::string(5 - number.size(), '0') + number;
    }
    ++count_;
    out_.calls.push_back(std::move(call));
    return true;
}

bool answer_parser::read_call(std::string_view body)
{
    if (!jinja::valid_utf8(body)) return false;
    body = trimmed(body);
    if (style_.tools == calls::glm) return read_glm_call(body);
    try {
        if (style_.tools == calls::deepseek) return read_deepseek_call(body);
        if (style_.tools != calls::harmony) return read_json_calls(body);
        jinja::budget b(json_limits());
        auto const arguments = jinja::parse_json(b, body.empty() ? "{}" : body);
        return arguments.is_mapping() && jinja::valid_utf8(recipient_) &&
               add_call({recipient_, jinja::dump_json(b, arguments, {}), {}});
    } catch (jinja::failure const&) {
        return false;
    }
}

/// One object or an array of them. All of them are read, or none.
bool answer_parser::read_json_calls(std::string_view body)
{
    jinja::budget b(json_limits());
    auto const all = jinja::parse_json(b, body);
    std::vector<jinja::value> items;
    if (all.is_sequence())
        items = all.items().items;
    else
        items.push_back(all);
    if (items.empty()) return false;
    std::vector<tool_call> read;
    read.reserve(items.size());
    for (auto const& item : items) {
        if (!item.is_mapping()) return false;
        auto const member = [&](std::initializer_list<std::string_view> names) -> jinja::value const* {
            for (auto const name : names) {
                if (auto const* v = item.members().find(name)) return v;
            }
            return nullptr;
        };
        auto const* name = member({"name", "tool_name"});
        if (name == nullptr || !name->is_string() || name->string().bytes.empty()) return false;
        tool_call call{name->string().bytes, "{}", {}};
        if (auto const* given = member({"arguments", "parameters"})) {
            auto const arguments = given->is_string() ? jinja::parse_json(b, given->string().bytes) : *given;
            if (!arguments.is_mapping()) return false;
            call.arguments = jinja::dump_json(b, arguments, {});
        }
        auto const* id = member({"id", "tool_call_id"});
        if (id != nullptr && id->is_string()) call.id = id->string().bytes;
        read.push_back(std::move(call));
    }
    for (auto& call : read) {
        // Command R's way to say that it calls none.
        bool const none =
            style_.tools == calls::command_r && call.name.starts_with("directly") && call.name.ends_with("answer");
        if (!none) add_call(std::move(call));
    }
    return true;
}

/// A name, then keys and values; a value that is not JSON is a string.
bool answer_parser::read_glm_call(std::string_view body)
{
    constexpr std::string_view key_open = "<arg_key>", key_end = "</arg_key>";
    constexpr std::string_view value_open = "<arg_value>", value_end = "</arg_value>";
    auto rest = body;
    auto const name = trimmed(rest.substr(0, std::min(rest.find(key_open), rest.size())));
    if (name.empty() || name.find_first_of("<>\n{}") != std::string_view::npos) return false;
    rest.remove_prefix(std::min(rest.find(key_open), rest.size()));
    try {
        jinja::budget b(json_limits());
        jinja::mapping arguments;
        while (!trimmed(rest).empty()) {
            rest = trimmed(rest);
            auto const key_at = rest.find(key_end);
            if (!rest.starts_with(key_open) || key_at == std::string_view::npos) return false;
            auto const key = trimmed(rest.substr(key_open.size(), key_at - key_open.size()));
            rest = trimmed(rest.substr(key_at + key_end.size()));
            auto const value_at = rest.find(value_end);
            if (!rest.starts_with(value_open) || value_at == std::string_view::npos) return false;
            auto const text = rest.substr(value_open.size(), value_at - value_open.size());
            rest.remove_prefix(value_at + value_end.size());
            jinja::value item;
            try {
                item = jinja::parse_json(b, text);
            } catch (jinja::failure const&) {
                item = jinja::make_text(b, std::string(text));
            }
            arguments.put(b, jinja::make_text(b, std::string(key)), std::move(item));
        }
        return add_call({std::string(name), jinja::dump_json(b, jinja::make_mapping(b, std::move(arguments)), {}), {}});
    } catch (jinja::failure const&) {
        return false;
    }
}

/// "function<｜tool▁sep｜>name ```json {...} ```", or `name<｜tool▁sep｜>{...}`. The first of a block has its own
/// marker before it.
bool answer_parser::read_deepseek_call(std::string_view body)
{
    constexpr std::string_view fence = "```", language = "json";
    if (body.starts_with(deepseek::call_begin)) body.remove_prefix(deepseek::call_begin.size());
    auto const at = body.find(deepseek::separator);
    if (at == std::string_view::npos) return false;
    auto name = trimmed(body.substr(0, at));
    auto given = trimmed(body.substr(at + deepseek::separator.size()));
    if (!given.starts_with('{')) {
        auto const open = given.find(fence);
        if (name != "function" || open == std::string_view::npos) return false;
        name = trimmed(given.substr(0, open));
        given.remove_prefix(open + fence.size());
        if (given.starts_with(language)) given.remove_prefix(language.size());
        if (!given.ends_with(fence)) return false; // the last one: strings may hold others
        given = trimmed(given.substr(0, given.size() - fence.size()));
    }
    if (name.find_first_of("<>\n{}") != std::string_view::npos) return false;
    jinja::budget b(json_limits());
    auto const arguments = jinja::parse_json(b, given.empty() ? "{}" : given);
    return arguments.is_mapping() && add_call({std::string(name), jinja::dump_json(b, arguments, {}), {}});
}

} // namespace plait
