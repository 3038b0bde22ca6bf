#include <plait/model/text/unicode.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/utf8.hpp>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace plait::unicode {
namespace {

utf8proc_category_t category(char32_t c) noexcept
{
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool between(char32_t c, char32_t first, char32_t last) noexcept
{
    return c >= first && c <= last;
}

utf8proc_propval_t combining_class(utf8proc_int32_t c) noexcept
{
    return utf8proc_get_property(c)->combining_class;
}

// utf8proc's own ordering exchanges neighbours, which is quadratic on a long run of marks.
void order_marks(std::vector<utf8proc_int32_t>& text)
{
    std::vector<std::uint64_t> keys; // combining class, place, character
    constexpr unsigned character_bits = 21, place_bits = 32;
    for (std::size_t at = 0; at < text.size();) {
        keys.clear();
        std::size_t end = at;
        for (; end < text.size(); ++end) {
            std::uint64_t const order = combining_class(text[end]);
            if (order == 0) break;
            keys.push_back(order << (character_bits + place_bits) | (end - at) << character_bits |
                           static_cast<std::uint64_t>(text[end]));
        }
        if (keys.size() > 1) std::sort(keys.begin(), keys.end());
        for (auto const key : keys)
            text[at++] = static_cast<utf8proc_int32_t>(key & ((1u << character_bits) - 1));
        at = end + 1;
    }
}

// True where no form could change the text, by a bound on its characters.
bool is_inert(std::string_view text, form how) noexcept
{
    // U+0300 is the first that NFC can join to another; the lead bytes below 0xCC are of characters before it.
    unsigned char const first = how == form::nfc ? 0xCC : 0x80;
    return std::all_of(text.begin(), text.end(),
                       [&](char c) { return static_cast<unsigned char>(c) < first || (c & 0xC0) == 0x80; }) &&
           (how == form::nfc || std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }));
}

} // namespace

bool is_white_space(char32_t c) noexcept
{
    return between(c, 9, 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || between(c, 0x2000, 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_mark(char32_t c) noexcept
{
    auto const k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) noexcept
{
    return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t c) noexcept
{
    auto const k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

bool is_word(char32_t c) noexcept
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    case UTF8PROC_CATEGORY_SO: // letters in circles and squares are Other_Alphabetic
        return between(c, 0x24B6, 0x24E9) || between(c, 0x1F130, 0x1F149) || between(c, 0x1F150, 0x1F169) ||
               between(c, 0x1F170, 0x1F189);
    default:
        return c == 0x200C || c == 0x200D; // Join_Control
    }
}

bool is_han(char32_t c) noexcept
{
    return between(c, 0x4E00, 0x9FFF) || between(c, 0x3400, 0x4DBF) || between(c, 0x20000, 0x2A6DF) ||
           between(c, 0x2A700, 0x2B73F) || between(c, 0x2B740, 0x2B81F) || between(c, 0x2B920, 0x2CEAF) ||
           between(c, 0xF900, 0xFAFF) || between(c, 0x2F800, 0x2FA1F);
}

void append_lower(std::string& out, char32_t c)
{
    if (c == 0x130) { // the only one whose lower case is two characters (SpecialCasing.txt)
        out += "i\u0307";
        return;
    }
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string to_form(std::string_view text, form how)
{
    if (text.size() >= std::size_t{1} << 29) throw error(errc::invalid_argument, "text: 512 MiB or more");
    if (is_inert(text, how)) return std::string(text);
    bool const compatible = how == form::nfkc || how == form::nfkd;
    auto const options =
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> scalars;
    scalars.reserve(text.size());
    std::array<utf8proc_int32_t, 32> parts{}; // the longest decomposition has 18
    int boundary = 0;
    for (std::size_t i = 0; i < text.size();) {
        auto const unit = first_utf8(text.substr(i));
        i += unit.length;
        auto const count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(unit.value), parts.data(),
                                                   static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
        if (count < 0) throw error(errc::invalid_argument, std::string("text: ") + utf8proc_errmsg(count));
        scalars.insert(scalars.end(), parts.begin(), parts.begin() + count);
    }
    order_marks(scalars);
    auto size = static_cast<utf8proc_ssize_t>(scalars.size());
    if (how == form::nfc || how == form::nfkc) {
        size = utf8proc_normalize_utf32(scalars.data(), size,
                                        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (size < 0) throw error(errc::invalid_argument, std::string("text: ") + utf8proc_errmsg(size));
    }
    std::string out;
    out.reserve(text.size());
    for (auto const c : std::span(scalars).first(static_cast<std::size_t>(size)))
        append_utf8(out, static_cast<char32_t>(c));
    return out;
}

std::size_t first_grapheme(std::string_view text, std::size_t limit) noexcept
{
    auto last = first_utf8(text);
    std::size_t at = last.length;
    utf8proc_int32_t state = 0;
    while (at < text.size() && at < limit) {
        auto const next = first_utf8(text.substr(at));
        if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                             static_cast<utf8proc_int32_t>(next.value), &state)) {
            break;
        }
        at += next.length;
        last = next;
    }
    return at;
}

} // namespace plait::unicode
