#include <plait/model/text/normalizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/unicode.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace plait;

namespace {

std::string normalized(std::vector<normal::step> steps, std::string_view text)
{
    return normalizer(std::move(steps)).apply(text);
}

std::string little_endian(std::uint32_t value)
{
    std::string out;
    for (int i = 0; i < 4; ++i, value >>= 8)
        out += static_cast<char>(value & 0xFF);
    return out;
}

} // namespace

TEST_CASE("the normalisation forms are those of Unicode Standard Annex 15")
{
    using unicode::form;
    // The annex's figures 3, 4 and 6, and Hangul.
    CHECK(unicode::to_form("\u212B", form::nfc) == "\u00C5");
    CHECK(unicode::to_form("\u212B", form::nfd) == "A\u030A");
    CHECK(unicode::to_form("\u1E69", form::nfd) == "s\u0323\u0307");
    CHECK(unicode::to_form("\u1E0B\u0323", form::nfc) == "\u1E0D\u0307");
    CHECK(unicode::to_form("q\u0307\u0323", form::nfc) == "q\u0323\u0307");
    CHECK(unicode::to_form("\uFB01", form::nfc) == "\uFB01");
    CHECK(unicode::to_form("\uFB01", form::nfkc) == "fi");
    CHECK(unicode::to_form("2\u2075", form::nfkd) == "25");
    CHECK(unicode::to_form("\u1E9B\u0323", form::nfkc) == "\u1E69");
    CHECK(unicode::to_form("\u1112\u1161\u11AB", form::nfc) == "\uD55C");
    CHECK(unicode::to_form("\uD55C", form::nfd) == "\u1112\u1161\u11AB");
    for (auto const how : {form::nfc, form::nfd, form::nfkc, form::nfkd}) {
        CHECK(unicode::to_form("", how).empty());
        CHECK(unicode::to_form(std::string_view("plain\0text", 10), how) == std::string_view("plain\0text", 10));
    }
    CHECK(unicode::to_form("caf\u00E9", form::nfc) == "caf\u00E9");
}

TEST_CASE("a hundred thousand marks in the wrong order are put in order")
{
    std::string wrong = "a";
    for (int i = 0; i < 50'000; ++i)
        wrong += "\u0307\u0323";
    auto const right = unicode::to_form(wrong, unicode::form::nfd);
    CHECK(right.size() == wrong.size());
    CHECK(right.starts_with("a\u0323\u0323"));
    CHECK(right.ends_with("\u0307\u0307"));
}

TEST_CASE("each step does what its name says")
{
    CHECK(normalized({}, "as it is") == "as it is");
    CHECK(normalized({normal::lower{}}, "ÀÉΣ İ") == "àéσ i\u0307");
    CHECK(normalized({normal::form::nfd, normal::strip_marks{}}, "Ǻñ") == "An");
    CHECK(normalized({normal::strip{}}, " \u3000a b\n") == "a b");
    CHECK(normalized({normal::strip{.left = false}}, " a ") == " a");
    CHECK(normalized({normal::prepend{"▁"}}, "a") == "▁a");
    CHECK(normalized({normal::prepend{"▁"}}, "").empty());
    CHECK(normalized({normal::replace{.pattern = " ", .with = "▁"}}, " a b") == "▁a▁b");
    CHECK(normalized({normal::replace{.pattern = "[0-9]+", .is_regex = true, .with = "#"}}, "a12b3") == "a#b#");
    CHECK(normalized({normal::replace{.pattern = "", .with = "x"}}, "ab") == "ab");
    CHECK(normalized({normal::bert{}}, "Zürich\x01\t你好") == "zurich  你  好 ");
    CHECK(normalized({normal::blanks{}}, "a  b\n\tc d") == "a<|blank_2|>b<n><|tab|>c d");
    CHECK(normalized({normal::blanks{}}, std::string(81, ' ')) == "<|blank_80|> ");
    CHECK(normalized({normal::sentencepiece{}}, "  a   b ") == "▁a▁b");
    CHECK(normalized({normal::sentencepiece{nullptr, nullptr, false}}, " a ") == "▁▁a▁");
    CHECK(normalized({normal::sentencepiece{nullptr, nullptr, true, true, true, true}}, "a b") == "a▁b▁");
    CHECK(normalized({normal::sentencepiece{}}, "   ").empty());
}

TEST_CASE("a text may not grow without bound")
{
    std::vector<normal::step> const steps(4, normal::replace{.pattern = "x", .with = "xxxxxxxxxxxxxxxx"});
    CHECK(normalized(steps, "x").size() == 65536);
    CHECK_THROWS_AS(normalized(steps, std::string(100, 'x')), error);
}

TEST_CASE("a table of replacements that was made to run in circles comes to an end")
{
    // One unit whose label fits every byte that leads back to it.
    std::string const text("ab\0", 3);
    CHECK_THROWS_AS(charsmap("", "map"), error);
    CHECK_THROWS_AS(charsmap(little_endian(5) + text, "map"), error);
    CHECK_THROWS_AS(charsmap(little_endian(400) + text, "map"), error);
    CHECK_THROWS_AS(charsmap(little_endian(4) + little_endian(0), "map"), error);        // no replacements
    CHECK_THROWS_AS(charsmap(little_endian(4) + little_endian(0) + "ab", "map"), error); // without an end
    CHECK_THROWS_AS(charsmap(little_endian(4) + little_endian(0) + "\xFF" + text, "map"), error);
    std::uint32_t seed = 1;
    for (int round = 0; round < 200; ++round) {
        std::string units;
        for (int i = 0; i < 256; ++i) {
            seed = seed * 1664525 + 1013904223;
            units += little_endian((seed >> 8 & 0x3FF) << 10 | (seed >> 3 & 0x100) | (seed >> 20 & 0xFF));
        }
        charsmap const map(little_endian(static_cast<std::uint32_t>(units.size())) + units + text, "map");
        std::string bytes;
        for (int i = 0; i < 300; ++i)
            bytes += static_cast<char>(i);
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            auto const found = map.longest(std::string_view(bytes).substr(at));
            CHECK((!found || found->length <= 64));
        }
    }
}
