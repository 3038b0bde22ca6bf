#include <algorithm>
#include <array>
#include <plait/model/chat/jinja/text.hpp>
#include <plait/model/chat/jinja/unicode.hpp>

namespace plait::jinja {

namespace {

constexpr char32_t capital_sigma = 0x3A3;
constexpr char32_t small_sigma = 0x3C3;
constexpr char32_t final_sigma = 0x3C2;
constexpr std::size_t short_part = 16; // up to here the plain search is used: it costs at most this factor

bool in_ranges(std::span<unicode::range const> ranges, char32_t c) noexcept
{
    auto const after =
        std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t v, auto const& r) { return v < r.first; });
    return after != ranges.begin() && c <= std::prev(after)->last;
}

void append_mapped(std::string& out, unicode::case_table const& table, char32_t c)
{
    if (c < 0x80 && !is_lower(c) && !is_upper(c)) {
        out += static_cast<char>(c);
        return;
    }
    auto const special = std::lower_bound(table.special.begin(), table.special.end(), c,
                                          [](auto const& e, char32_t v) { return e.point < v; });
    if (special != table.special.end() && special->point == c) {
        out += special->utf8;
        return;
    }
    // Runs may interleave (stride 2 beside stride 2), so look at a few whose first point is not behind c.
    auto after = std::upper_bound(table.runs.begin(), table.runs.end(), c,
                                  [](char32_t v, auto const& r) { return v < r.first; });
    for (int tries = 0; tries < 4 && after != table.runs.begin(); ++tries) {
        --after;
        if (c <= after->last && (c - after->first) % after->stride == 0) {
            append_point(out, static_cast<char32_t>(static_cast<std::int64_t>(c) + after->delta));
            return;
        }
    }
    append_point(out, c);
}

std::size_t previous_start(std::string_view text, std::size_t at) noexcept
{
    do
        --at;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
    return at;
}

/// Whether the sigma between `before` and `after` closes a word: a cased letter stands before, none behind.
bool closes_word(std::string_view text, std::size_t before, std::size_t after)
{
    bool found = false;
    while (before > 0) {
        before = previous_start(text, before);
        auto at = before;
        auto const c = next_point(text, at);
        if (in_ranges(unicode::ignorable(), c)) continue;
        found = is_cased(c);
        break;
    }
    if (!found) return false;
    while (after < text.size()) {
        auto const c = next_point(text, after);
        if (in_ranges(unicode::ignorable(), c)) continue;
        return !is_cased(c);
    }
    return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t start, std::size_t end, char32_t c)
{
    if (c == capital_sigma)
        append_point(out, closes_word(text, start, end) ? final_sigma : small_sigma);
    else
        append_mapped(out, unicode::to_lower(), c);
}

template<class Append>
std::string mapped(std::string_view text, Append append)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        auto const start = at;
        auto const c = next_point(text, at);
        append(out, c, start, at);
    }
    return out;
}

bool in_set(std::string_view set, char32_t c)
{
    for (std::size_t at = 0; at < set.size();) {
        if (next_point(set, at) == c) return true;
    }
    return false;
}

void append_hex(std::string& out, char32_t c, int digits)
{
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
        out += "0123456789abcdef"[(c >> shift) & 15];
}

bool is_line_end(char32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

} // namespace

bool valid_utf8(std::string_view bytes) noexcept
{
    for (std::size_t at = 0; at < bytes.size();) {
        auto const lead = static_cast<unsigned char>(bytes[at]);
        if (lead < 0x80) {
            ++at;
            continue;
        }
        std::size_t const length = lead >= 0xC2 && lead < 0xE0   ? 2
                                   : lead >= 0xE0 && lead < 0xF0 ? 3
                                   : lead >= 0xF0 && lead < 0xF5 ? 4
                                                                 : 0;
        if (length == 0 || at + length > bytes.size()) return false;
        for (std::size_t i = 1; i < length; ++i) {
            if ((static_cast<unsigned char>(bytes[at + i]) & 0xC0) != 0x80) return false;
        }
        auto const second = static_cast<unsigned char>(bytes[at + 1]);
        if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) || (lead == 0xF0 && second < 0x90) ||
            (lead == 0xF4 && second >= 0x90))
            return false;
        at += length;
    }
    return true;
}

std::size_t code_points(std::string_view text) noexcept
{
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

char32_t next_point(std::string_view text, std::size_t& at) noexcept
{
    auto const byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
    auto const lead = byte(0);
    char32_t c = lead;
    std::size_t length = 1;
    if (lead >= 0xF0) {
        c = (lead & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
        length = 4;
    } else if (lead >= 0xE0) {
        c = (lead & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
        length = 3;
    } else if (lead >= 0x80) {
        c = (lead & 31) << 6 | (byte(1) & 63);
        length = 2;
    }
    at += length;
    return c;
}

void append_point(std::string& out, char32_t c)
{
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 63));
        out += static_cast<char>(0x80 | (c & 63));
    } else {
        out += static_cast<char>(0xF0 | c >> 18);
        out += static_cast<char>(0x80 | (c >> 12 & 63));
        out += static_cast<char>(0x80 | (c >> 6 & 63));
        out += static_cast<char>(0x80 | (c & 63));
    }
}

std::size_t offset_of(std::string_view text, std::size_t index) noexcept
{
    std::size_t at = 0;
    while (index > 0 && at < text.size()) {
        ++at;
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
            ++at;
        --index;
    }
    return at;
}

// ASCII first: it is nearly all there is, and its answers need no table.

bool is_space(char32_t c) noexcept
{
    if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
    return in_ranges(unicode::space(), c);
}

bool is_alpha(char32_t c) noexcept
{
    if (c < 0x80) return is_lower(c) || is_upper(c);
    return in_ranges(unicode::alphabetic(), c);
}

bool is_decimal(char32_t c) noexcept
{
    if (c < 0x80) return c >= '0' && c <= '9';
    return in_ranges(unicode::decimal(), c);
}

bool is_digit(char32_t c) noexcept
{
    return is_decimal(c) || (c >= 0x80 && in_ranges(unicode::digit(), c));
}

bool is_numeric(char32_t c) noexcept
{
    return is_digit(c) || (c >= 0x80 && in_ranges(unicode::numeric(), c));
}

bool is_lower(char32_t c) noexcept
{
    if (c < 0x80) return c >= 'a' && c <= 'z';
    return in_ranges(unicode::lower(), c);
}

bool is_upper(char32_t c) noexcept
{
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    return in_ranges(unicode::upper(), c);
}

bool is_title(char32_t c) noexcept
{
    return c >= 0x80 && in_ranges(unicode::title(), c);
}

bool is_printable(char32_t c) noexcept
{
    if (c < 0x80) return c >= 0x20 && c < 0x7F;
    return !in_ranges(unicode::unprintable(), c);
}

bool is_cased(char32_t c) noexcept
{
    return is_lower(c) || is_upper(c) || is_title(c);
}

std::string to_lower(std::string_view text)
{
    return mapped(text, [&](std::string& out, char32_t c, std::size_t start, std::size_t end) {
        append_lower(out, text, start, end, c);
    });
}

std::string to_upper(std::string_view text)
{
    return mapped(text, [](std::string& out, char32_t c, std::size_t, std::size_t) {
        append_mapped(out, unicode::to_upper(), c);
    });
}

std::string to_title(std::string_view text)
{
    bool inside = false;
    return mapped(text, [&](std::string& out, char32_t c, std::size_t start, std::size_t end) {
        if (inside)
            append_lower(out, text, start, end, c);
        else
            append_mapped(out, unicode::to_title(), c);
        inside = is_cased(c);
    });
}

std::string capitalize(std::string_view text)
{
    return mapped(text, [&](std::string& out, char32_t c, std::size_t start, std::size_t end) {
        if (start == 0)
            append_mapped(out, unicode::to_title(), c);
        else
            append_lower(out, text, start, end, c);
    });
}

std::string swap_case(std::string_view text)
{
    return mapped(text, [&](std::string& out, char32_t c, std::size_t start, std::size_t end) {
        if (is_upper(c))
            append_lower(out, text, start, end, c);
        else if (is_lower(c))
            append_mapped(out, unicode::to_upper(), c);
        else
            append_point(out, c);
    });
}

std::string_view strip(std::string_view text, std::string_view const* chars, bool left, bool right)
{
    auto const matches = [&](char32_t c) { return chars ? in_set(*chars, c) : is_space(c); };
    while (left && !text.empty()) {
        std::size_t at = 0;
        if (!matches(next_point(text, at))) break;
        text.remove_prefix(at);
    }
    while (right && !text.empty()) {
        auto const start = previous_start(text, text.size());
        auto at = start;
        if (!matches(next_point(text, at))) break;
        text = text.substr(0, start);
    }
    return text;
}

std::size_t find(std::string_view text, std::string_view part, std::size_t from)
{
    if (from > text.size()) return std::string_view::npos;
    if (part.size() <= short_part) return text.find(part, from);
    if (part.size() > text.size() - from) return std::string_view::npos;

    // Knuth, Morris, Pratt: `border[i]` is the longest proper prefix of part[0..i] that is also its suffix.
    std::vector<std::size_t> border(part.size(), 0);
    for (std::size_t i = 1, k = 0; i < part.size(); ++i) {
        while (k > 0 && part[i] != part[k])
            k = border[k - 1];
        if (part[i] == part[k]) ++k;
        border[i] = k;
    }
    for (std::size_t i = from, k = 0; i < text.size(); ++i) {
        while (k > 0 && text[i] != part[k])
            k = border[k - 1];
        if (text[i] == part[k]) ++k;
        if (k == part.size()) return i + 1 - k;
    }
    return std::string_view::npos;
}

std::size_t find_last(std::string_view text, std::string_view part)
{
    if (part.size() <= short_part) return text.rfind(part);
    std::string const reversed_text(text.rbegin(), text.rend());
    std::string const reversed_part(part.rbegin(), part.rend());
    auto const at = find(reversed_text, reversed_part);
    return at == std::string_view::npos ? at : text.size() - at - part.size();
}

std::size_t count(std::string_view text, std::string_view part, std::size_t limit)
{
    std::size_t n = 0;
    for (std::size_t at = 0; n < limit; ++n) {
        at = find(text, part, at);
        if (at == std::string_view::npos) break;
        at += part.size();
    }
    return n;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, long long limit, bool from_right)
{
    std::vector<std::string_view> parts;
    if (from_right && separator.size() > short_part) {
        // A cut at a time, `find_last` would reverse the whole text for each.
        std::string const reversed_text(text.rbegin(), text.rend());
        std::string const reversed_separator(separator.rbegin(), separator.rend());
        for (auto const part : split(reversed_text, reversed_separator, limit, false)) {
            auto const end = text.size() - static_cast<std::size_t>(part.data() - reversed_text.data());
            parts.push_back(text.substr(end - part.size(), part.size()));
        }
        std::reverse(parts.begin(), parts.end());
        return parts;
    }
    while (limit < 0 || static_cast<long long>(parts.size()) < limit) {
        auto const at = from_right ? text.rfind(separator) : find(text, separator);
        if (at == std::string_view::npos) break;
        parts.push_back(from_right ? text.substr(at + separator.size()) : text.substr(0, at));
        text = from_right ? text.substr(0, at) : text.substr(at + separator.size());
    }
    parts.push_back(text);
    if (from_right) std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<std::string_view> split_space(std::string_view text, long long limit, bool from_right)
{
    std::vector<std::string_view> parts;
    for (;;) {
        text = strip(text, nullptr, !from_right, from_right);
        if (text.empty()) break;
        if (limit >= 0 && static_cast<long long>(parts.size()) >= limit) {
            parts.push_back(text); // the rest keeps its white space at the far end
            break;
        }
        if (from_right) {
            auto start = text.size();
            while (start > 0) {
                auto const before = previous_start(text, start);
                auto at = before;
                if (is_space(next_point(text, at))) break;
                start = before;
            }
            parts.push_back(text.substr(start));
            text = text.substr(0, start);
        } else {
            std::size_t end = 0;
            while (end < text.size()) {
                auto at = end;
                if (is_space(next_point(text, at))) break;
                end = at;
            }
            parts.push_back(text.substr(0, end));
            text = text.substr(end);
        }
    }
    if (from_right) std::reverse(parts.begin(), parts.end());
    return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends)
{
    std::vector<std::string_view> lines;
    std::size_t start = 0;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = at;
        auto const c = next_point(text, at);
        if (!is_line_end(c)) continue;
        if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
        lines.push_back(text.substr(start, (keep_ends ? at : end) - start));
        start = at;
    }
    if (start < text.size()) lines.push_back(text.substr(start));
    return lines;
}

void append_quoted(std::string& out, std::string_view text)
{
    bool const single = text.find('\'') != std::string_view::npos;
    char const quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
    out += quote;
    for (std::size_t at = 0; at < text.size();) {
        auto const c = next_point(text, at);
        if (c == static_cast<unsigned char>(quote) || c == '\\') {
            out += '\\';
            out += static_cast<char>(c);
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\t') {
            out += "\\t";
        } else if (is_printable(c)) {
            append_point(out, c);
        } else if (c < 0x100) {
            out += "\\x";
            append_hex(out, c, 2);
        } else if (c < 0x10000) {
            out += "\\u";
            append_hex(out, c, 4);
        } else {
            out += "\\U";
            append_hex(out, c, 8);
        }
    }
    out += quote;
}

void append_escaped(std::string& out, std::string_view text)
{
    for (char const c : text) {
        switch (c) {
        case '&':
            out += "&amp;";
            break;
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '\'':
            out += "&#39;";
            break;
        case '"':
            out += "&#34;";
            break;
        default:
            out += c;
        }
    }
}

} // namespace plait::jinja
