#include <plait/apps/chat/printable.hpp>

#include <plait/model/text/utf8.hpp>

#include <cstdio>

namespace plait::chat {

namespace {

/// The directional embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9).
bool reorders(char32_t c) noexcept
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string shown(std::string_view text, bool keep_lines)
{
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const unit = first_utf8(text);
        auto const bytes = text.substr(0, unit.length);
        text.remove_prefix(unit.length);
        char escaped[16];
        if (unit.what != utf8_unit::kind::scalar) {
            append_utf8(out, 0xfffd);
        } else if (unit.value == '\t' || (unit.value == '\n' && keep_lines)) {
            out += bytes;
        } else if (unit.value == '\n') {
            out += "\\n";
        } else if (unit.value < 0x20 || (unit.value >= 0x7f && unit.value < 0xa0)) {
            std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(unit.value));
            out += escaped;
        } else if (reorders(unit.value)) {
            std::snprintf(escaped, sizeof escaped, "\\u{%x}", static_cast<unsigned>(unit.value));
            out += escaped;
        } else {
            out += bytes;
        }
    }
    return out;
}

} // namespace

std::string printable(std::string_view text)
{
    return shown(text, true);
}

std::string printable_line(std::string_view text)
{
    return shown(text, false);
}

} // namespace plait::chat
