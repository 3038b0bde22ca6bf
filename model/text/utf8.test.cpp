#include <plait/model/text/utf8.hpp>

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

using namespace plait;

namespace {

std::string const fffd = "\xEF\xBF\xBD";

std::string encoded(char32_t scalar)
{
    std::string out;
    append_utf8(out, scalar);
    return out;
}

/// The definition: an ill-formed byte, or the longest run of bytes that begins some scalar's encoding, is replaced.
class by_definition {
public:
    by_definition()
    {
        for (char32_t c = 0; c < 0x110000; ++c) {
            if (c >= 0xD800 && c <= 0xDFFF) continue;
            auto const text = encoded(c);
            for (std::size_t n = 1; n < text.size(); ++n)
                beginnings_.insert(text.substr(0, n));
            // Scalars that share all but the last byte are told apart by it alone.
            if (text.size() > 1) last_.insert(text.substr(0, text.size() - 1));
        }
    }

    std::string replace(std::string_view bytes) const
    {
        std::string out;
        while (!bytes.empty()) {
            auto const lead = static_cast<unsigned char>(bytes.front());
            std::size_t n = 1;
            bool whole = lead < 0x80;
            while (!whole && n < bytes.size() && beginnings_.count(std::string(bytes.substr(0, n))) != 0) {
                auto const next = static_cast<unsigned char>(bytes[n]);
                bool const continues = next >= 0x80 && next <= 0xBF;
                if (last_.count(std::string(bytes.substr(0, n))) != 0 && continues) {
                    ++n;
                    whole = true;
                } else if (beginnings_.count(std::string(bytes.substr(0, n + 1))) != 0) {
                    ++n;
                } else {
                    break;
                }
            }
            out += whole ? std::string(bytes.substr(0, n)) : fffd;
            bytes.remove_prefix(n);
        }
        return out;
    }

private:
    std::set<std::string> beginnings_;
    std::set<std::string> last_;
};

} // namespace

TEST_CASE("every scalar value is one unit and reads back")
{
    std::size_t wrong = 0;
    for (char32_t c = 0; c < 0x110000; ++c) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        auto const text = encoded(c);
        auto const unit = first_utf8(text);
        if (unit.what != utf8_unit::kind::scalar || unit.value != c || unit.length != text.size()) ++wrong;
        for (std::size_t n = 1; n < text.size(); ++n) {
            auto const part = first_utf8(std::string_view(text).substr(0, n));
            if (part.what != utf8_unit::kind::truncated || part.length != n) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("ill-formed sequences become U+FFFD as the Unicode Standard's examples do")
{
    // Tables 3-8 to 3-11 of the standard.
    CHECK(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
          fffd + fffd + fffd + fffd + fffd + fffd + fffd + fffd + "A");
    CHECK(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
          fffd + fffd + fffd + fffd + fffd + fffd + fffd + fffd + "A");
    CHECK(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
          fffd + fffd + fffd + fffd + fffd + "A" + fffd + fffd + "B");
    CHECK(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == fffd + fffd + fffd + fffd + "A");
    CHECK(replace_invalid_utf8("") == "");
    CHECK(replace_invalid_utf8("x\xF0\x9F\x98") == "x" + fffd);
}

TEST_CASE("replacement follows the definition for every four bytes of the interesting ones, however they are cut")
{
    by_definition const reference;
    std::vector<unsigned char> const bytes{0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1,
                                           0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4, 0xFF};
    std::size_t wrong = 0;
    std::string text(4, '\0');
    for (auto const a : bytes) {
        for (auto const b : bytes) {
            for (auto const c : bytes) {
                for (auto const d : bytes) {
                    text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c), static_cast<char>(d)};
                    auto const expected = reference.replace(text);
                    if (replace_invalid_utf8(text) != expected || !is_utf8(expected)) ++wrong;
                    if (is_utf8(text) != (expected == text)) ++wrong;
                    utf8_decoder decoder;
                    std::string streamed;
                    for (std::size_t i = 0; i < text.size(); ++i)
                        decoder.push({&text[i], 1}, streamed);
                    decoder.finish(streamed);
                    if (streamed != expected) ++wrong;
                }
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a stream cut anywhere gives the text of the whole, and says where a held sequence ends")
{
    std::mt19937 random(1);
    std::size_t wrong = 0;
    for (int round = 0; round < 2000; ++round) {
        std::string bytes;
        for (int i = 0; i < 40; ++i) {
            if (random() % 3 == 0) {
                bytes += static_cast<char>(random());
            } else {
                append_utf8(bytes, static_cast<char32_t>(random() % 0x300));
            }
        }
        utf8_decoder decoder;
        std::string out;
        for (std::size_t at = 0; at < bytes.size();) {
            std::size_t const n = random() % 6;
            std::size_t const before = out.size();
            bool const held = decoder.holds();
            std::size_t const decided = decoder.push(std::string_view(bytes).substr(at, n), out);
            if (!held && decided != before) ++wrong;
            // The part up to `decided` is the one sequence that was held.
            if (decided != before && first_utf8(std::string_view(out).substr(before)).length != decided - before)
                ++wrong;
            if (!is_utf8(out)) ++wrong;
            at += n;
        }
        decoder.finish(out);
        if (out != replace_invalid_utf8(bytes) || decoder.holds()) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("the valid prefix ends before the first ill-formed or incomplete sequence")
{
    CHECK(valid_utf8_prefix("0123456789abcdef") == 16);
    CHECK(valid_utf8_prefix("0123456\xC3\xA9\xFF") == 9);
    CHECK(valid_utf8_prefix("01234567\xE2\x82") == 8);
    CHECK(valid_utf8_prefix("\xED\xA0\x80") == 0);
}
