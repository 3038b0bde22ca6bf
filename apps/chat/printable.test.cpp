#include <plait/apps/chat/printable.hpp>

#include <doctest/doctest.h>

using namespace plait::chat;

TEST_CASE("text without control characters is printed as it is")
{
    CHECK(printable("") == "");
    CHECK(printable("one\ttwo\nthree") == "one\ttwo\nthree");
    CHECK(printable("caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80");
    CHECK(printable("\xc2\xa0") == "\xc2\xa0"); // the first that is not a control character
}

TEST_CASE("what would steer a terminal is shown, not done")
{
    CHECK(printable("\033[2J") == "\\x1b[2J");
    CHECK(printable("a\rb") == "a\\x0db");
    CHECK(printable("\a\b\x7f") == "\\x07\\x08\\x7f");
    CHECK(printable(std::string_view("\0", 1)) == "\\x00");
    CHECK(printable("\xc2\x9b"
                    "2J") == "\\x9b2J"); // CSI in one character
    CHECK(printable("\xe2\x80\xae"
                    "abc") == "\\u{202e}abc");
    CHECK(printable("\xe2\x81\xa6") == "\\u{2066}");
}

TEST_CASE("bytes that are not UTF-8 are printed as the replacement character")
{
    CHECK(printable("\xff") == "\xef\xbf\xbd");
    CHECK(printable("a\x9b") == "a\xef\xbf\xbd"); // a lone CSI byte of an 8-bit terminal
}

TEST_CASE("a message of one line stays on one line")
{
    CHECK(printable_line("a\nb\tc\033") == "a\\nb\tc\\x1b");
}
