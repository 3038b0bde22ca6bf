#include <plait/model/text/quote.hpp>

namespace plait {

std::string quote(std::string_view text)
{
    constexpr std::size_t limit = 96;
    constexpr char digits[] = "0123456789abcdef";
    std::string out = "'";
    for (unsigned char const c : text.substr(0, limit)) {
        if (c < 0x20 || c == 0x7f || c == '\'' || c == '\\') {
            out += "\\x";
            out += digits[c >> 4];
            out += digits[c & 15];
        } else {
            out += static_cast<char>(c);
        }
    }
    return out + (text.size() > limit ? "...'" : "'");
}

} // namespace plait
