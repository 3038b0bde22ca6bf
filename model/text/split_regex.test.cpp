#include <plait/model/text/split_regex.hpp>

#include <plait/actors/error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace plait;

namespace {

std::vector<std::string> matches(std::string_view expression, std::string_view text)
{
    split_regex const regex(expression);
    split_regex::workspace memory(text.size());
    std::vector<split_regex::range> found;
    regex.find_all(text, found, memory);
    std::vector<std::string> out;
    for (auto const& [begin, end] : found)
        out.emplace_back(text.substr(begin, end - begin));
    return out;
}

using strings = std::vector<std::string>;

} // namespace

TEST_CASE("expressions mean what they mean to Oniguruma")
{
    CHECK(matches(R"(\w+)", "naïve e\u0301 a_b‿c 1½") == strings{"naïve", "e\u0301", "a_b‿c", "1½"});
    CHECK(matches(R"(\W)", "a-b") == strings{"-"});
    CHECK(matches(R"(\h+)", "xCAFEg 09") == strings{"CAFE", "09"});
    CHECK(matches(R"([\s\h]+)", "z a\tB z") == strings{" a\tB "});
    CHECK(matches(R"(\s)", "a\u180Eb\u3000") == strings{"\u3000"});
    CHECK(matches("\\u4f60", "你好") == strings{"你"});
    CHECK(matches(R"(^a|b$)", "ab\nab") == strings{"a", "b", "a", "b"});
    CHECK(matches(R"([[:alpha:]]+)", "ab1") == strings{"ab"});
    CHECK(matches(R"([]a]+)", "x]a") == strings{"]a"});
    CHECK(matches(R"([^]a]+)", "x]a") == strings{"x"});
    // Possessive after `+` and `?`, but not after a count.
    CHECK(matches(R"(a++a)", "aaa").empty());
    CHECK(matches(R"(\p{N}{1,3}+)", "1234567") == strings{"1234567"});
    CHECK(matches(R"((?:ab){1,2}+ab)", "ababab") == strings{"ababab"});
    CHECK(matches(R"([a-c]{2}+)", "abcab") == strings{"abca"});
    CHECK(matches("a{,", "a{,") == strings{"a{,"});
}

TEST_CASE("what PCRE2 can't read as Oniguruma would is refused by name")
{
    for (auto const* expression : {"(", "[a-z&&[aeiou]]", "[a[b]]", "\\", "a\\", "\\p", "\\p{NoSuch}", "[\\W]", "\\u12",
                                   "[a", "(?<n>", "\\C", "[[:x"}) {
        CAPTURE(expression);
        try {
            split_regex const regex(expression);
            FAIL_CHECK("accepted");
        } catch (error const& e) {
            CHECK(e.condition() == errc::unsupported);
            CHECK(std::string(e.what()).find("expression") != std::string::npos);
        }
    }
}

TEST_CASE("an escaped text matches itself alone")
{
    std::string const text = R"(a.b*c[d]{2}(e)|f^g$h\i?j+k-l#m&n~)";
    CHECK(matches(escape_regex(text), "x" + text + "y") == strings{text});
}

TEST_CASE("an expression that takes too many steps ends with an error")
{
    CHECK_THROWS_AS(matches(R"((?:a|aa|aaa)+\d)", std::string(100, 'a')), error);
}
