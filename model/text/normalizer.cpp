#include <plait/model/text/normalizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/symbol_set.hpp>
#include <plait/model/text/unicode.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <utility>

namespace plait {
namespace {

constexpr std::string_view escaped_space = "\u2581";
constexpr std::size_t longest_blank = 80;

// Calls `each` with every scalar value of `text` and the bytes that spell it.
template<class F>
void for_each_scalar(std::string_view text, F each)
{
    while (!text.empty()) {
        auto const unit = first_utf8(text);
        each(unit.value, text.substr(0, unit.length));
        text.remove_prefix(unit.length);
    }
}

std::string lowered(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for_each_scalar(text, [&](char32_t c, std::string_view) { unicode::append_lower(out, c); });
    return out;
}

template<class Drop>
std::string without(std::string_view text, Drop drop)
{
    std::string out;
    out.reserve(text.size());
    for_each_scalar(text, [&](char32_t c, std::string_view bytes) {
        if (!drop(c)) out += bytes;
    });
    return out;
}

std::string_view stripped(std::string_view text, normal::strip const& how)
{
    while (how.left && !text.empty()) {
        auto const unit = first_utf8(text);
        if (!unicode::is_white_space(unit.value)) break;
        text.remove_prefix(unit.length);
    }
    while (how.right && !text.empty()) {
        std::size_t at = text.size() - 1;
        while (at > 0 && (text[at] & 0xC0) == 0x80)
            --at;
        if (!unicode::is_white_space(first_utf8(text.substr(at)).value)) break;
        text = text.substr(0, at);
    }
    return text;
}

std::string mapped_by_grapheme(std::string_view text, charsmap const& map)
{
    constexpr std::size_t longest = 5;
    std::string out;
    out.reserve(text.size());
    auto const whole = [&](std::string_view key) -> std::optional<std::string_view> {
        if (auto const found = map.shortest(key)) return found->with;
        return std::nullopt;
    };
    while (!text.empty()) {
        auto const length = unicode::first_grapheme(text, longest + 1);
        auto const cluster = text.substr(0, length);
        if (auto const with = length <= longest ? whole(cluster) : std::nullopt) {
            out += *with;
        } else {
            for_each_scalar(cluster, [&](char32_t, std::string_view bytes) { out += whole(bytes).value_or(bytes); });
        }
        text.remove_prefix(length);
    }
    return out;
}

std::string sentencepiece_form(std::string_view text, normal::sentencepiece const& how)
{
    auto const next = [&]() -> std::pair<std::string_view, std::size_t> {
        if (how.symbols) {
            if (auto const length = how.symbols->match(text); length > 0) return {text.substr(0, length), length};
        }
        if (how.map) {
            if (auto const found = how.map->longest(text)) return {found->with, found->length};
        }
        std::size_t const length = first_utf8(text).length;
        return {text.substr(0, length), length};
    };
    std::string out;
    out.reserve(text.size() + 3);
    auto const space = how.escape_spaces ? escaped_space : std::string_view(" ");
    if (how.remove_extra_spaces) {
        while (!text.empty()) {
            auto const [with, length] = next();
            if (with != " ") break;
            text.remove_prefix(length);
        }
    }
    if (text.empty()) return out;
    if (how.add_prefix && !how.prefix_at_end) out += space;
    bool after_space = how.remove_extra_spaces;
    while (!text.empty()) {
        auto [with, length] = next();
        while (after_space && with.starts_with(' '))
            with.remove_prefix(1);
        for (char const c : with) {
            if (c == ' ') {
                out += space;
            } else {
                out += c;
            }
        }
        if (!with.empty()) after_space = how.remove_extra_spaces && with.ends_with(' ');
        text.remove_prefix(length);
    }
    while (how.remove_extra_spaces && out.ends_with(space))
        out.resize(out.size() - space.size());
    if (how.add_prefix && how.prefix_at_end) out += space;
    return out;
}

std::string bert_form(std::string_view text, normal::bert const& how)
{
    std::string out;
    out.reserve(text.size());
    for_each_scalar(text, [&](char32_t c, std::string_view bytes) {
        bool const layout = c == '\t' || c == '\n' || c == '\r';
        if (how.clean && (c == 0 || c == 0xFFFD || (!layout && unicode::is_other(c)))) return;
        if (how.clean && unicode::is_white_space(c)) {
            out += ' ';
        } else if (how.space_han && unicode::is_han(c)) {
            out.append(" ").append(bytes).append(" ");
        } else {
            out += bytes;
        }
    });
    if (how.strip_accents) out = without(unicode::to_form(out, unicode::form::nfd), unicode::is_nonspacing_mark);
    return how.lower ? lowered(out) : out;
}

std::string with_blanks(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] == ' ') {
            auto const end = std::min({text.find_first_not_of(' ', i), text.size(), i + longest_blank});
            if (end - i > 1) {
                out.append("<|blank_").append(std::to_string(end - i)).append("|>");
            } else {
                out += ' ';
            }
            i = end;
            continue;
        }
        if (text[i] == '\n') {
            out += "<n>";
        } else if (text[i] == '\t') {
            out += "<|tab|>";
        } else {
            out += text[i];
        }
        ++i;
    }
    return out;
}

[[noreturn]] void too_long()
{
    throw error(errc::invalid_argument, "text: grows too long when normalised");
}

unicode::form to_unicode(normal::form how) noexcept
{
    switch (how) {
    case normal::form::nfc:
        return unicode::form::nfc;
    case normal::form::nfd:
        return unicode::form::nfd;
    case normal::form::nfkc:
        return unicode::form::nfkc;
    case normal::form::nfkd:
        break;
    }
    return unicode::form::nfkd;
}

template<class... F>
struct overloaded : F... {
    using F::operator()...;
};

} // namespace

normalizer::normalizer(std::vector<normal::step> steps)
    : steps_(std::move(steps))
{
    for (auto const& step : steps_) {
        auto const* r = std::get_if<normal::replace>(&step);
        if (r != nullptr && r->is_regex) expressions_.emplace_back(r->pattern);
    }
}

std::string normalizer::apply(std::string_view text) const
{
    std::size_t const limit = 64 * text.size() + (std::size_t{64} << 10);
    std::string out(text);
    auto expression = expressions_.begin();
    for (auto const& step : steps_) {
        auto const* r = std::get_if<normal::replace>(&step);
        run(step, r != nullptr && r->is_regex ? &*expression++ : nullptr, out, limit);
        if (out.size() > limit) too_long();
    }
    return out;
}

void normalizer::run(normal::step const& step, split_regex const* expression, std::string& text,
                     std::size_t limit) const
{
    auto const replace_all = [&](normal::replace const& r) {
        std::string out;
        out.reserve(text.size());
        std::size_t at = 0;
        auto const put = [&](std::size_t begin, std::size_t end) {
            out.append(text, at, begin - at).append(r.with);
            if (out.size() > limit) too_long();
            at = end;
        };
        if (expression != nullptr) {
            std::vector<split_regex::range> matches;
            split_regex::workspace memory(text.size());
            expression->find_all(text, matches, memory);
            for (auto const& m : matches)
                put(m.begin, m.end);
        } else if (!r.pattern.empty()) {
            for (auto i = text.find(r.pattern); i != std::string::npos; i = text.find(r.pattern, at))
                put(i, i + r.pattern.size());
        }
        out.append(text, at);
        text = std::move(out);
    };
    std::visit(overloaded{
                   [&](normal::form how) { text = unicode::to_form(text, to_unicode(how)); },
                   [&](normal::lower) { text = lowered(text); },
                   [&](normal::strip_marks) { text = without(text, unicode::is_mark); },
                   [&](normal::strip const& how) { text = std::string(stripped(text, how)); },
                   [&](normal::prepend const& p) {
                       if (!text.empty()) text.insert(0, p.text);
                   },
                   replace_all,
                   [&](normal::table const& t) { text = mapped_by_grapheme(text, *t.map); },
                   [&](normal::sentencepiece const& how) { text = sentencepiece_form(text, how); },
                   [&](normal::bert const& how) { text = bert_form(text, how); },
                   [&](normal::blanks) { text = with_blanks(text); },
               },
               step);
}

} // namespace plait
