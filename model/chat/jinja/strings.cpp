#include <algorithm>
#include <limits>
#include <plait/model/chat/jinja/strings.hpp>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/text_builder.hpp>

namespace plait::jinja {

namespace {

/// All cased characters are of the wanted case, and there is one.
bool all_of_case(std::string_view text, bool (*wanted)(char32_t) noexcept)
{
    bool any = false;
    for (std::size_t at = 0; at < text.size();) {
        auto const c = next_point(text, at);
        if (!is_cased(c)) continue;
        if (!wanted(c)) return false;
        any = true;
    }
    return any;
}

} // namespace

value strip_text(budget& b, value const& subject, std::string_view const* chars, bool left, bool right)
{
    auto const& text = subject.string().bytes;
    auto const rest = strip(text, chars, left, right);
    auto const removed = text.size() - rest.size();
    b.search((removed + 1) * (chars ? chars->size() : 1));
    if (removed == 0) return subject;
    return make_part(b, subject.string(), rest);
}

value replace_text(budget& b, text const& subject, std::string_view old, text const& by, std::int64_t limit)
{
    std::string_view const text = subject.bytes;
    std::string_view const replacement = by.bytes;
    auto const most = limit < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
    b.search(text.size());
    auto const hits = std::min(old.empty() ? code_points(text) + 1 : count(text, old, most), most);
    if (hits == 0 || old == replacement) return make_part(b, subject, text);
    auto const kept = text.size() - hits * old.size();
    if (!replacement.empty() && hits > (std::numeric_limits<std::size_t>::max() - kept) / replacement.size())
        b.output(std::numeric_limits<std::size_t>::max());
    auto const size = kept + hits * replacement.size();
    b.output(size);
    text_builder out;
    out.reserve(size);
    std::size_t at = 0;
    for (std::size_t i = 0; i < hits; ++i) {
        if (old.empty()) {
            out.append(by);
            if (at == text.size()) break;
            auto const start = at;
            next_point(text, at);
            out.append(subject, text.substr(start, at - start));
            continue;
        }
        auto const found = find(text, old, at);
        out.append(subject, text.substr(at, found - at));
        out.append(by);
        at = found + old.size();
    }
    out.append(subject, text.substr(at));
    return out.finish(b);
}

value join_texts(budget& b, text const& separator, sequence const& items, bool strings_only)
{
    text_builder out;
    bool first = true;
    for (auto const& item : items.items) {
        b.step();
        if (!first) out.append(separator);
        first = false;
        if (strings_only && !item.is_string())
            throw failure("join() takes strings, not " + std::string(type_name(item)));
        append_str(b, out, item);
        b.output(out.size());
    }
    return out.finish(b);
}

value pad_text(budget& b, text const& subject, std::int64_t width, char align, std::string_view fill)
{
    auto const length = static_cast<std::int64_t>(subject.length);
    auto const padding = width > length ? static_cast<std::size_t>(width - length) : 0;
    if (padding > b.limits().output_bytes) b.output(padding);
    b.output(subject.bytes.size() + padding * fill.size());
    // str.center puts the odd blank left for an odd width only.
    auto const before = align == '<'   ? 0
                        : align == '>' ? padding
                                       : padding / 2 + (padding & static_cast<std::size_t>(width) & 1);
    std::string out;
    for (std::size_t i = 0; i < before; ++i)
        out += fill;
    out += subject.bytes;
    for (std::size_t i = before; i < padding; ++i)
        out += fill;
    return make_text(b, std::move(out));
}

value text_list(budget& b, text const& whole, std::vector<std::string_view> const& parts)
{
    std::vector<value> items;
    items.reserve(parts.size());
    for (auto const part : parts)
        items.push_back(make_part(b, whole, part));
    return make_sequence(b, sequence_kind::list, std::move(items));
}

value members_view(budget& b, mapping const& m, sequence_kind kind)
{
    std::vector<value> items;
    items.reserve(m.items.size());
    for (auto const& [key, item] : m.items) {
        if (kind == sequence_kind::keys)
            items.push_back(key);
        else if (kind == sequence_kind::values)
            items.push_back(item);
        else
            items.push_back(make_sequence(b, sequence_kind::tuple, {key, item}));
    }
    return make_sequence(b, kind, std::move(items));
}

bool is_lower_text(std::string_view text)
{
    return all_of_case(text, is_lower);
}

bool is_upper_text(std::string_view text)
{
    return all_of_case(text, is_upper);
}

} // namespace plait::jinja
