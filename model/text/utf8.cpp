#include <plait/model/text/utf8.hpp>

#include <cstring>

namespace plait {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool ascii8(char const* at) noexcept
{
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return (word & 0x8080808080808080u) == 0;
}

} // namespace

utf8_unit first_utf8(std::string_view bytes) noexcept
{
    using kind = utf8_unit::kind;
    auto const at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    unsigned const lead = at(0);
    if (lead < 0x80) return {lead, 1, kind::scalar};
    if (lead < 0xC2 || lead > 0xF4) return {0, 1, kind::ill_formed};

    std::uint8_t const length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // The second byte has a narrower range where a wider one would allow overlong forms, surrogates or values past
    // U+10FFFF.
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    char32_t value = lead & (0x7Fu >> length);
    for (std::uint8_t i = 1; i < length; ++i) {
        if (i == bytes.size()) return {0, i, kind::truncated};
        if (at(i) < low || at(i) > high) return {0, i, kind::ill_formed};
        value = value << 6 | (at(i) & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return {value, length, kind::scalar};
}

std::size_t valid_utf8_prefix(std::string_view bytes) noexcept
{
    std::size_t i = 0;
    while (i < bytes.size()) {
        if (bytes.size() - i >= 8 && ascii8(bytes.data() + i)) {
            i += 8;
            continue;
        }
        auto const unit = first_utf8(bytes.substr(i));
        if (unit.what != utf8_unit::kind::scalar) break;
        i += unit.length;
    }
    return i;
}

void append_utf8(std::string& out, char32_t scalar)
{
    auto const put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (scalar < 0x80) {
        put(scalar);
    } else if (scalar < 0x800) {
        put(0xC0 | scalar >> 6);
        put(0x80 | (scalar & 0x3F));
    } else if (scalar < 0x10000) {
        put(0xE0 | scalar >> 12);
        put(0x80 | (scalar >> 6 & 0x3F));
        put(0x80 | (scalar & 0x3F));
    } else {
        put(0xF0 | scalar >> 18);
        put(0x80 | (scalar >> 12 & 0x3F));
        put(0x80 | (scalar >> 6 & 0x3F));
        put(0x80 | (scalar & 0x3F));
    }
}

std::string replace_invalid_utf8(std::string_view bytes)
{
    std::string out;
    out.reserve(bytes.size());
    utf8_decoder decoder;
    decoder.push(bytes, out);
    decoder.finish(out);
    return out;
}

std::size_t utf8_decoder::push(std::string_view bytes, std::string& out)
{
    // Bytes join the held sequence one by one until it is decided. An ill-formed verdict always falls on the byte
    // just added, which then starts anew.
    while (count_ != 0 && !bytes.empty()) {
        held_[count_] = bytes.front();
        auto const unit = first_utf8({held_.data(), static_cast<std::size_t>(count_ + 1)});
        if (unit.what == utf8_unit::kind::ill_formed) {
            out += replacement;
            count_ = 0;
            break;
        }
        ++count_;
        bytes.remove_prefix(1);
        if (unit.what == utf8_unit::kind::scalar) {
            out.append(held_.data(), count_);
            count_ = 0;
        }
    }
    std::size_t const decided = out.size();

    while (!bytes.empty()) {
        std::size_t const valid = valid_utf8_prefix(bytes);
        out += bytes.substr(0, valid);
        bytes.remove_prefix(valid);
        if (bytes.empty()) break;
        auto const unit = first_utf8(bytes);
        if (unit.what == utf8_unit::kind::truncated) {
            bytes.copy(held_.data(), unit.length);
            count_ = unit.length;
        } else {
            out += replacement;
        }
        bytes.remove_prefix(unit.length);
    }
    return decided;
}

void utf8_decoder::finish(std::string& out)
{
    if (count_ != 0) out += replacement;
    count_ = 0;
}

} // namespace plait
