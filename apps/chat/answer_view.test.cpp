#include <plait/apps/chat/answer_view.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace plait;
using plait::chat::answer_view;

namespace {

answer_parts thought(std::string text)
{
    answer_parts out;
    out.reasoning = std::move(text);
    return out;
}

answer_parts text(std::string text)
{
    answer_parts out;
    out.text = std::move(text);
    return out;
}

answer_parts call(std::string name)
{
    answer_parts out;
    out.calls.push_back({std::move(name), R"({"a": 1})", "call00000"});
    return out;
}

std::string shown(answer_view::options how, std::vector<answer_parts> const& all)
{
    answer_view view(how);
    std::string out;
    for (auto const& part : all)
        out += view.show(part);
    return out + view.finish();
}

constexpr answer_view::options colours{true, true, true};
constexpr answer_view::options plain{true, false, true};
constexpr answer_view::options pipe{false, false, true};
constexpr auto json = R"({"name": "f", "arguments": {"a": 1}, "id": "call00000"})"
                      "\n";

} // namespace

TEST_CASE("thoughts are dimmed on a terminal with colours, and apart from the answer")
{
    CHECK(shown(colours, {thought("Hm"), thought(".\n"), text("Yes"), text(".")}) ==
          "\033[2mHm\033[0m\033[2m.\033[0m\n\nYes.\n");
    CHECK(shown(colours, {thought("Hm"), text("Yes\n")}) == "\033[2mHm\033[0m\n\nYes\n");
    CHECK(shown(colours, {thought("\n\n"), text("a")}) == "\n\n\na\n");
    CHECK(shown(colours, {text("a"), thought("b"), text("c")}) == "a\n\n\033[2mb\033[0m\n\nc\n");
    CHECK(shown(colours, {thought("Hm")}) == "\033[2mHm\033[0m\n");
}

TEST_CASE("thoughts are marked on a terminal without colours, and left out of a pipe or where nobody wants them")
{
    CHECK(shown(plain, {thought("Hm"), text("Yes")}) == "<think>\nHm\n</think>\n\nYes\n");
    CHECK(shown(plain, {thought("Hm")}) == "<think>\nHm\n</think>\n");
    CHECK(shown(pipe, {thought("Hm"), text("Yes")}) == "Yes\n");
    CHECK(shown(pipe, {thought("Hm")}) == "");
    CHECK(shown({true, true, false}, {thought("Hm"), text("Yes")}) == "Yes\n");
}

TEST_CASE("a call of a tool is a line of its own")
{
    for (auto const& how : {colours, plain, pipe}) {
        CHECK(shown(how, {call("f"), call("f")}) == std::string(json) + json);
        CHECK(shown(how, {text("I look."), call("f"), text("So")}) == "I look.\n" + std::string(json) + "So\n");
    }
    CHECK(shown(colours, {thought("Hm"), call("f")}) == "\033[2mHm\033[0m\n\n" + std::string(json));
}

TEST_CASE("an answer without parts is what it is")
{
    CHECK(shown(pipe, {text("a\n"), text("b")}) == "a\nb\n");
    CHECK(shown(pipe, {text("a\n")}) == "a\n");
    CHECK(shown(pipe, {}) == "");
    CHECK(shown(pipe, {text("\033[2Ja")}) == "\033[2Ja\n");
}

TEST_CASE("what would steer a terminal is shown in thoughts and calls too")
{
    CHECK(shown(colours, {thought("\033[2J")}) == "\033[2m\\x1b[2J\033[0m\n");
    CHECK(shown(plain, {thought("\r")}) == "<think>\n\\x0d\n</think>\n");
    CHECK(shown(colours, {call("\033\xe2\x80\xae")}) ==
          R"({"name": "\u001b\u{202e}", "arguments": {"a": 1}, "id": "call00000"})"
          "\n");
    CHECK(shown(pipe, {call("\033")}) == R"({"name": "\u001b", "arguments": {"a": 1}, "id": "call00000"})"
                                         "\n");
}

TEST_CASE("what was said is the answer without its thoughts, wherever it is shown")
{
    for (auto const& how : {colours, plain, pipe}) {
        answer_view view(how);
        view.show(thought("Hm"));
        CHECK(view.said() == "");
        view.show(text("I look."));
        view.show(call("f"));
        CHECK(view.said() == "I look.\n" + std::string(json));
    }
}
