#include <random>

#include <doctest/doctest.h>

#include <plait/model/chat/answer_parser.hpp>

using namespace plait;

namespace {

using calls = answer_style::calls;
using reasoning = answer_style::reasoning;

answer_parts parse(answer_style style, std::string const& text, bool inside = false, std::size_t size = 1 << 30)
{
    answer_parser parser(style, inside);
    answer_parts all;
    for (std::size_t at = 0; at < text.size(); at += size)
        all += parser.push(std::string_view(text).substr(at, size));
    all += parser.finish();
    return all;
}

answer_parts parts(std::string thoughts, std::string text, std::vector<tool_call> tools = {}, bool malformed = false)
{
    return {std::move(thoughts), std::move(text), std::move(tools), malformed};
}

struct example {
    answer_style style;
    bool inside;
    std::string text;
    answer_parts expected;
};

std::vector<example> examples()
{
    answer_style const think{reasoning::think, calls::none};
    answer_style const qwen{reasoning::think, calls::hermes};
    answer_style const llama{reasoning::none, calls::llama};
    answer_style const mistral{reasoning::none, calls::mistral};
    answer_style const command_r{reasoning::none, calls::command_r};
    answer_style const glm{reasoning::think, calls::glm};
    answer_style const granite{reasoning::response, calls::granite};
    answer_style const response{reasoning::response, calls::none};
    answer_style const harmony{reasoning::harmony, calls::harmony};
    answer_style const r1{reasoning::think, calls::deepseek};
    std::string const begin = "<｜tool▁calls▁begin｜>", end = "<｜tool▁calls▁end｜>";
    std::string const call = "<｜tool▁call▁begin｜>", done = "<｜tool▁call▁end｜>", sep = "<｜tool▁sep｜>";
    std::string const f = call + "function" + sep + "f\n```json\n{\"a\": 1}\n```" + done;
    std::string const broken = call + "function" + sep + "f\n```json\n{\"a\": 1\n```" + done;
    tool_call const read_f{"f", "{\"a\": 1}", "call00000"};
    return {
        {{}, false, " <think>x</think> <tool_call>", parts("", " <think>x</think> <tool_call>")},
        {think, false, "<think>\nWhy <b>?\n</think>\n\nBecause.", parts("Why <b>?\n", "Because.")},
        {think, true, "\nHm.</think>Yes", parts("Hm.", "Yes")},
        {think, false, "A <think> is no thought.", parts("", "A <think> is no thought.")},
        {think, false, "<think>never ends", parts("never ends", "")},
        {think, false, "<thin", parts("", "<thin")},
        {qwen, false,
         "<think>\n\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, "
         "\"ü\"]}}\n</tool_call>",
         parts("", "I look.\n", {{"f", "{\"a\": [1, \"ü\"]}", "call00000"}})},
        {qwen, false,
         "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":2}\"}</"
         "tool_call>\n<tool_call>{\"name\":\"g\",\"id\":\"7\"}</tool_call>",
         parts("", "", {{"f", "{\"x\": 2}", "call00000"}, {"g", "{}", "7"}})},
        {qwen, false, "<tool_call>{\"name\": f}</tool_call> done",
         parts("", "<tool_call>{\"name\": f}</tool_call> done", {}, true)},
        {qwen, false, "<tool_call>{\"name\": \"f\"", parts("", "<tool_call>{\"name\": \"f\"", {}, true)},
        {qwen, false, "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
         parts("", "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", {}, true)},
        {llama, false, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
         parts("", "", {{"f", "{\"a\": 1}", "call00000"}})},
        {llama, false, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
         parts("", "", {{"f", "{}", "call00000"}})},
        {llama, false, "I look.<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
         parts("", "I look.", {{"f", "{}", "call00000"}})},
        {llama, false, "<|python_tag|>print(1)", parts("", "<|python_tag|>print(1)", {}, true)},
        {qwen, false, "I look.<tool_call>", parts("", "I look.<tool_call>", {}, true)},
        {mistral, false, "[TOOL_CALLS]", parts("", "[TOOL_CALLS]", {}, true)},
        {llama, false, "{ is a brace", parts("", "{ is a brace", {}, true)},
        {llama, false, "Say {\"name\": \"f\"}", parts("", "Say {\"name\": \"f\"}")},
        {mistral, false,
         "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"abcdefghi\"}, {\"name\": \"g\", \"arguments\": "
         "{}}]",
         parts("", "", {{"f", "{}", "abcdefghi"}, {"g", "{}", "call00001"}})},
        {mistral, false, "[{\"name\": \"f\", \"arguments\": {}}]", parts("", "", {{"f", "{}", "call00000"}})},
        {mistral, false, "[1] is a reference", parts("", "[1] is a reference")},
        {command_r, false,
         "Plan: look.\nAction: ```json\n[{\"tool_name\": \"f\", \"parameters\": {\"q\": \"x\"}}]\n```",
         parts("", "Plan: look.\n", {{"f", "{\"q\": \"x\"}", "call00000"}})},
        {command_r, false, "Action: ```json\n[{\"tool_name\": \"directly-answer\", \"parameters\": {}}]\n```Hi",
         parts("", "Hi")},
        {glm, false,
         "<think>t</think>\n<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>n</"
         "arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
         parts("t", "", {{"f", "{\"city\": \"Bern\", \"n\": 2}", "call00000"}})},
        {glm, false, "<tool_call>f\n<arg_key>a</tool_call>",
         parts("", "<tool_call>f\n<arg_key>a</tool_call>", {}, true)},
        {granite, false, "<think>Because.</think>\n<response>So.</response>", parts("Because.", "So.")},
        {response, false, "<think>a</think><response>Yes.</response>\n", parts("a", "Yes.\n")},
        {response, false, "<respond>", parts("", "<respond>")},
        {granite, false, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]",
         parts("", "", {{"f", "{}", "call00000"}})},
        {harmony, false,
         "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi!<|return|>",
         parts("Hm.", "Hi!")},
        {harmony, false,
         "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f "
         "<|constrain|>json<|message|>{\"a\":1}<|call|>",
         parts("Hm.", "", {{"f", "{\"a\": 1}", "call00000"}})},
        {harmony, false, "<|start|>assistant to=functions.f<|channel|>commentary<|message|>no<|call|>",
         parts("", "no", {}, true)},
        {harmony, false, "<|channel|>commentary to=functions.f<|message|><|call|>",
         parts("", "", {{"f", "{}", "call00000"}})},
        {harmony, false, "<|channel|>commentary to=functions.f<|message|>", parts("", "", {{"f", "{}", "call00000"}})},
        {harmony, false, "No channels.", parts("", "No channels.")},
        {harmony, false, "<|channel|>final", parts("", "<|channel|>final")},
        {harmony, false, "x<|message|>y", parts("", "x<|message|>y")},
        {r1, true, "\nHm.\n</think>\n\nI look.\n" + begin + f + end, parts("Hm.\n", "I look.\n", {read_f})},
        {r1, false, "<think>\n\n</think>\n\n" + begin + "\n" + f + end + "\nThere.", parts("", "There.", {read_f})},
        {r1, false,
         begin + f + "\n" + call + "function" + sep + "look_up\n```json\n{\"q\": \"```ü```\"}\n```" + done + end,
         parts("", "", {read_f, {"look_up", "{\"q\": \"```ü```\"}", "call00001"}})},
        {r1, false, begin + call + "f" + sep + "{\"a\":1}" + done + call + "g" + sep + "{}" + done + end,
         parts("", "", {read_f, {"g", "{}", "call00001"}})},
        {r1, false, f, parts("", "", {read_f})},
        {r1, false, begin + "function" + sep + "f\n```\n{\"a\": 1}```" + done + end, parts("", "", {read_f})},
        {r1, false, begin + call + "function" + sep + "f\n```json\n```" + done + end,
         parts("", "", {{"f", "{}", "call00000"}})},
        // The end of the block ends its last call, and the end of the answer the block.
        {r1, false, begin + f + "\n", parts("", "", {read_f})},
        {r1, false, begin + f.substr(0, f.size() - done.size()) + end + end, parts("", end, {read_f})},
        {r1, false, begin + f.substr(0, f.size() - done.size()),
         parts("", begin + f.substr(0, f.size() - done.size()), {}, true)},
        {r1, false, "I look." + begin, parts("", "I look." + begin, {}, true)},
        {r1, false, begin + call, parts("", begin + call, {}, true)},
        {r1, false, begin + end + " none", parts("", begin + end + " none", {}, true)},
        {r1, false, begin + broken + end, parts("", begin + broken + end, {}, true)},
        {r1, false, begin + f + "\n" + broken + end, parts("", broken + end, {read_f}, true)},
        {r1, false, begin + broken + "\n" + f + end, parts("", begin + broken + "\n", {read_f}, true)},
        {r1, false, begin + f + end + "So" + end, parts("", "So" + end, {read_f})},
        {r1, false, "Say " + end + " or " + done + sep + "<｜tool▁",
         parts("", "Say " + end + " or " + done + sep + "<｜tool▁")},
    };
}

} // namespace

TEST_CASE("answers of each family are split into thoughts, text and calls, however they arrive")
{
    for (auto const& e : examples()) {
        CAPTURE(e.text);
        for (std::size_t const size : {1, 2, 3, 5, 7, 11, 1 << 20}) {
            CAPTURE(size);
            auto const got = parse(e.style, e.text, e.inside, size);
            CHECK(got.reasoning == e.expected.reasoning);
            CHECK(got.text == e.expected.text);
            CHECK(got.malformed == e.expected.malformed);
            CHECK(got.calls.size() == e.expected.calls.size());
            CHECK((got.calls == e.expected.calls));
        }
    }
}

TEST_CASE("a call of DeepSeek that has no name, no object or no fences is text")
{
    for (std::string const body :
         {"function<｜tool▁sep｜>\n```json\n{}\n```", "<｜tool▁sep｜>{}", "function f\n```json\n{}\n```",
          "function<｜tool▁sep｜>f", "function<｜tool▁sep｜>f\n{}", "function<｜tool▁sep｜>f\n```json\n{}",
          "function<｜tool▁sep｜>f\n```", "function<｜tool▁sep｜>f\n```json\n[1]\n```", "f<｜tool▁sep｜>[1]",
          "f<｜tool▁sep｜>{} {}", "tool<｜tool▁sep｜>f\n```json\n{}\n```",
          "function<｜tool▁sep｜>f\ng\n```json\n{}\n```", "function<｜tool▁sep｜><f>\n```json\n{}\n```",
          "function<｜tool▁sep｜>f\xff\n```json\n{}\n```", "f\xe2\x96<｜tool▁sep｜>{}"}) {
        CAPTURE(body);
        auto const text =
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + body + "<｜tool▁call▁end｜><｜tool▁calls▁end｜> Sorry.";
        for (std::size_t const size : {1, 2, 7, 1 << 20}) {
            auto const got = parse({reasoning::none, calls::deepseek}, text, false, size);
            CHECK((got == parts("", text, {}, true)));
        }
    }
    auto const got =
        parse({reasoning::none, calls::deepseek},
              "<｜tool▁call▁begin｜>function<｜tool▁sep｜> suche-ü.2 \n```json\n{}\n```<｜tool▁call▁end｜>");
    CHECK((got == parts("", "", {{"suche-ü.2", "{}", "call00000"}})));
}

TEST_CASE("each call of a block comes when it is complete")
{
    answer_parser parser({reasoning::none, calls::deepseek});
    auto const call = [](std::string const& name) {
        return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + name + "\n```json\n{}\n```<｜tool▁call▁end｜>";
    };
    CHECK((parser.push("<｜tool▁calls▁begin｜>" + call("f")) == parts("", "", {{"f", "{}", "call00000"}})));
    CHECK((parser.push("\n" + call("g")) == parts("", "", {{"g", "{}", "call00001"}})));
    CHECK((parser.push("<｜tool▁calls▁end｜>") == answer_parts{}));
    CHECK((parser.finish(false) == answer_parts{}));
}

TEST_CASE("any cut of any mixture of markers gives the same parts")
{
    std::string_view const words[] = {"<think>",
                                      "</think>",
                                      "<tool_call>",
                                      "</tool_call>",
                                      "{\"name\": \"f\"}",
                                      "[TOOL_CALLS]",
                                      "[{",
                                      "}]",
                                      "<|tool_call|>",
                                      "<response>",
                                      "Action: ```json",
                                      "```",
                                      "<arg_key>",
                                      "</arg_key>",
                                      "<arg_value>",
                                      "</arg_value>",
                                      "<|start|>",
                                      "assistant",
                                      "<|channel|>",
                                      "analysis",
                                      "final",
                                      " to=functions.f",
                                      "<|message|>",
                                      "<|end|>",
                                      "<|call|>",
                                      "<|python_tag|>",
                                      "<｜tool▁calls▁begin｜>",
                                      "<｜tool▁call▁begin｜>",
                                      "function<｜tool▁sep｜>f",
                                      "```json\n{}```",
                                      "<｜tool▁call▁end｜>",
                                      "<｜tool▁calls▁end｜>",
                                      "<｜tool▁",
                                      "{",
                                      "[",
                                      "<",
                                      "<|",
                                      " ",
                                      "\n",
                                      "a",
                                      "ü",
                                      "\xff"};
    std::mt19937 random(5);
    for (int round = 0; round < 3000; ++round) {
        answer_style const style{static_cast<reasoning>(random() % 4), static_cast<calls>(random() % 9)};
        std::string text;
        for (auto n = random() % 12; n > 0; --n)
            text += words[random() % std::size(words)];
        if (random() % 8 == 0) text.insert(text.size() / 2, 500 + random() % 20, 'x');
        auto const whole = parse(style, text);
        answer_parser parser(style);
        answer_parts all;
        for (std::size_t at = 0; at < text.size();) {
            auto const size = 1 + random() % 9;
            all += parser.push(std::string_view(text).substr(at, size));
            at += size;
        }
        all += parser.finish();
        CAPTURE(text);
        CHECK((all == whole));
    }
}

TEST_CASE("of a call that was cut off before its arguments nobody knows that it has none")
{
    for (std::string const behind : {"", "\n", " \n "}) {
        answer_parser parser({reasoning::harmony, calls::harmony});
        auto all = parser.push("<|channel|>commentary to=functions.f<|message|>" + behind);
        all += parser.finish(false);
        CHECK(all.calls.empty());
        CHECK(all.malformed);
    }
    answer_parser parser({reasoning::none, calls::mistral});
    auto all = parser.push("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]");
    all += parser.finish(false); // it is complete, whatever would have followed
    CHECK(all.calls.size() == 1);
}

TEST_CASE("what is held back is bounded")
{
    answer_parser parser({reasoning::think, calls::hermes});
    answer_parts all;
    all += parser.push("<tool_call>");
    std::string const piece(1000, 'x');
    std::size_t most = 0;
    for (int i = 0; i < 1000; ++i) {
        all += parser.push(piece);
        most = std::max(most, parser.held());
    }
    all += parser.finish();
    CHECK(most <= answer_parser::longest_call);
    CHECK(most > answer_parser::longest_call / 2);
    CHECK(all.malformed);
    CHECK(all.text.size() == 11 + 1'000'000);
}

TEST_CASE("deeply nested arguments are text")
{
    std::string const text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " + std::string(100'000, '[') +
                             std::string(100'000, ']') + "}}</tool_call>";
    auto const got = parse({reasoning::none, calls::hermes}, text);
    CHECK(got.malformed);
    CHECK(got.text == text);
}

TEST_CASE("the style is told from the markers in a template")
{
    CHECK((answer_style_of("{{ messages }}") == answer_style{}));
    CHECK((answer_style_of("<think> <tool_call> <tool_response>") == answer_style{reasoning::think, calls::hermes}));
    CHECK((answer_style_of("<tool_call>{name}<arg_key>") == answer_style{reasoning::none, calls::glm}));
    CHECK((answer_style_of("[TOOL_CALLS]") == answer_style{reasoning::none, calls::mistral}));
    CHECK((answer_style_of("<|channel|>final<|message|>") == answer_style{reasoning::harmony, calls::harmony}));
    CHECK((answer_style_of("<|python_tag|>") == answer_style{reasoning::none, calls::llama}));
    CHECK((answer_style_of("</think> <｜tool▁calls▁begin｜>") == answer_style{reasoning::think, calls::deepseek}));
    CHECK((answer_style_of("</think> <｜tool▁outputs▁begin｜>") == answer_style{reasoning::think, calls::none}));
    CHECK(opens_thoughts("<|Assistant|><think>\n"));
    CHECK(!opens_thoughts("<think>\n\n</think>\n\n"));
}

TEST_CASE("the markers of a style are those that its answers have")
{
    CHECK(markers_of({}).empty());
    std::vector<std::string_view> const expected{"<think>",
                                                 "</think>",
                                                 "<｜tool▁calls▁begin｜>",
                                                 "<｜tool▁call▁begin｜>",
                                                 "<｜tool▁sep｜>",
                                                 "<｜tool▁call▁end｜>",
                                                 "<｜tool▁calls▁end｜>"};
    CHECK(markers_of({reasoning::think, calls::deepseek}) == expected);
}
