#include <doctest/doctest.h>

#include <random>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/scripted_model.hpp>

using namespace plait;
using namespace plait::test;

namespace {

using strings = std::vector<std::string>;

constexpr std::size_t place = 160; // behind every prompt here

// What published templates have of markers, and the shortest that renders a conversation with calls.
constexpr auto think_template =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{% if m.tool_call_id %} ({{ m.name }} {{ m.tool_call_id }}){% endif %}<|im_end|>\n{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "<|im_start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}";
constexpr auto opened_template =
    "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}<|im_start|>assistant\n<think>\n";
constexpr auto harmony_template =
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}<|start|>assistant"
    "{# <|channel|> #}";
constexpr auto mistral_template = "{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}{# [TOOL_CALLS] #}";
constexpr auto granite_template =
    "{% for m in messages %}{{ m.content }}\n{% endfor %}{# <think> <response> <|tool_call|> #}";

constexpr auto weather = R"([{"type": "function", "function": {"name": "f"}}])";

strings const harmony_tokens{"<|start|>", "<|end|>",       "<|message|>", "<|channel|>",
                             "<|call|>",  "<|constrain|>", "<|return|>"};

scripted_model_options says(char const* chat_template, strings pieces, strings control = {})
{
    scripted_model_options out;
    out.chat_template = chat_template;
    out.control = std::move(control);
    out.answers.push_back({place, std::move(pieces)});
    return out;
}

/// A greedy question that ends when the model says so.
request question(std::string text = "hi")
{
    request what;
    what.messages.push_back({"user", std::move(text)});
    what.sampling.temperature = 0;
    return what;
}

struct reading_of {
    answer_parts parts;
    std::vector<std::int32_t> tokens;
    choice_summary end;
    std::vector<std::string> texts; ///< of the pieces that had some
};

task<reading_of> read(engine running, request what)
{
    auto answer = co_await running.submit(std::move(what));
    reading_of out;
    for (;;) {
        auto got = co_await answer.next();
        if (!got) break;
        if (!got->text.empty()) out.texts.push_back(got->text);
        for (auto const& token : got->tokens)
            out.tokens.push_back(token.id);
        out.parts += std::move(*got);
    }
    out.end = answer.result().choices.front();
    co_return out;
}

task<reading_of> read_from(runtime& rt, scripted_model_options model, request what)
{
    tiny_file file(scripted_model(model));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto out = co_await read(running, std::move(what));
    co_await running.close();
    co_return out;
}

request offering(request what)
{
    what.tools_json = weather;
    return what;
}

} // namespace

CO_TEST_CASE("the channels of gpt-oss, whose markers are control tokens, are the parts of its answer")
{
    strings const pieces{"<|channel|>", "analysis",    "<|message|>", "Hm",          ".",  "<|end|>", "<|start|>",
                         "assistant",   "<|channel|>", "final",       "<|message|>", "Hi", " there",  "<|return|>"};
    auto const got = co_await read_from(rt, says(harmony_template, pieces, harmony_tokens), question());
    CHECK(got.parts.reasoning == "Hm.");
    CHECK(got.parts.text == "Hi there");
    CHECK(got.parts.calls.empty());
    CHECK(got.texts == strings{"Hi", " there"}); // as it comes
    CHECK(got.end.finish == finish_reason::stop);

    strings const call{"<|channel|>", "commentary", " to=functions.f ", "<|constrain|>", "json", "<|message|>",
                       R"({"a":)",    " 1}",        "<|call|>"};
    auto const called = co_await read_from(rt, says(harmony_template, call, harmony_tokens), question());
    CHECK((called.parts.calls == std::vector<tool_call>{{"f", R"({"a": 1})", "call00000"}}));
    CHECK(called.parts.text == "");
    CHECK(called.end.finish == finish_reason::stop);

    // Its end is the end of the answer, which is no text; cut off before it, it is no call.
    strings const bare{"<|channel|>", "commentary", " to=functions.f", "<|message|>", "<|call|>"};
    tiny_file file(scripted_model(says(harmony_template, bare, harmony_tokens)));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto ask = question();
    auto const whole = co_await read(running, ask);
    CHECK((whole.parts == answer_parts{"", "", {{"f", "{}", "call00000"}}, false}));
    auto const before = static_cast<std::int64_t>(place - running.prompt_of(ask).size());
    ask.max_tokens = before + 4;
    auto const cut = co_await read(running, ask);
    CHECK(cut.end.finish == finish_reason::length);
    CHECK((cut.parts == answer_parts{"", "", {}, true}));
    co_await running.close();
}

CO_TEST_CASE("the markers of Mistral and Granite are seen where they are control tokens")
{
    strings const mistral{"[TOOL_CALLS]", R"([{"name": "f",)", R"( "arguments": {"a": "b"}, "id": "abcdefghi"}])"};
    strings const marker{"[TOOL_CALLS]"};
    auto const got = co_await read_from(rt, says(mistral_template, mistral, marker), offering(question()));
    CHECK((got.parts.calls == std::vector<tool_call>{{"f", R"({"a": "b"})", "abcdefghi"}}));
    CHECK(got.parts.text == "");

    strings const control{"<think>", "</think>", "<response>", "</response>", "<|tool_call|>"};
    strings const granite{"<think>", "So", "</think>", "<response>", "Yes", "</response>"};
    auto const thought = co_await read_from(rt, says(granite_template, granite, control), question());
    CHECK(thought.parts.reasoning == "So");
    CHECK(thought.parts.text == "Yes");
    strings const calls{"<|tool_call|>", R"([{"name": "f", "arguments": {}}])"};
    auto const called = co_await read_from(rt, says(granite_template, calls, control), offering(question()));
    CHECK((called.parts.calls == std::vector<tool_call>{{"f", "{}", "call00000"}}));
}

CO_TEST_CASE("thoughts are told from text where the markers are text, control tokens, or the prompt's last words")
{
    strings const pieces{"<think>", "\n", "why", "\n", "</think>", "\n\n", "because"};
    for (auto const& control : {strings{}, strings{"<think>", "</think>"}}) {
        auto const got = co_await read_from(rt, says(think_template, pieces, control), question());
        CHECK(got.parts.reasoning == "why\n");
        CHECK(got.parts.text == "because");
    }
    strings const rest{"why", "</think>", "because"};
    for (auto const& control : {strings{}, strings{"<think>", "</think>"}}) {
        auto const got = co_await read_from(rt, says(opened_template, rest, control), question());
        CHECK(got.parts.reasoning == "why");
        CHECK(got.parts.text == "because");
    }
}

CO_TEST_CASE("other control tokens stay out of the text, and a style of one's own is taken, or none")
{
    strings const pieces{"<think>", "why", "<|other|>", "</think>", "be", "<|other|>", "cause"};
    strings const control{"<think>", "</think>", "<|other|>"};
    tiny_file file(scripted_model(says(think_template, pieces, control)));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto what = question();
    auto got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why", "because", {}, false}));
    auto const tokens = got.tokens;

    what.style = answer_style{}; // as it was written, without any control token
    got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"", "whybecause", {}, false}));
    CHECK(got.tokens == tokens);

    request plain; // what is no message is divided on request only
    plain.text = "hi";
    plain.sampling.temperature = 0;
    got = co_await read(running, plain);
    CHECK(got.parts.text == "whybecause");
    plain.style = running.info().style;
    got = co_await read(running, plain);
    CHECK((got.parts == answer_parts{"why", "because", {}, false}));
    co_await running.close();
}

CO_TEST_CASE("what looks like a call is one where tools are offered, and text elsewhere")
{
    strings const pieces{"<tool_call>", R"({"name": "f"})", "</tool_call>"};
    tiny_file file(scripted_model(says(think_template, pieces)));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto got = co_await read(running, question());
    CHECK(got.parts.text == R"(<tool_call>{"name": "f"}</tool_call>)");
    CHECK(got.parts.calls.empty());
    got = co_await read(running, offering(question()));
    CHECK(got.parts.text == "");
    CHECK((got.parts.calls == std::vector<tool_call>{{"f", "{}", "call00000"}}));
    co_await running.close();
}

CO_TEST_CASE("stop strings, stop tokens and the longest answer end answers with parts where they did")
{
    strings const pieces{"<think>", "why not", "</think>", "be", "cause", " so"};
    tiny_file file(scripted_model(says(think_template, pieces, {"<think>", "</think>"})));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto what = question();
    what.stop = {"cau"};
    auto got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why not", "be", {}, false}));
    CHECK(got.end.stopped_by == "cau");
    what.stop = {"not"}; // in the thoughts too: the answer is what the model writes
    got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why ", "", {}, false}));
    what.stop = {"</think>"};
    got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why not", "", {}, false}));

    what.stop.clear();
    what.stop_tokens = {*running.info().text->find("cause")};
    got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why not", "be", {}, false}));
    CHECK(got.end.finish == finish_reason::stop);

    what.stop_tokens.clear();
    auto const prompt = static_cast<std::int64_t>(running.prompt_of(what).size());
    what.max_tokens = static_cast<std::int64_t>(place) - prompt + 2; // into the thoughts
    got = co_await read(running, what);
    CHECK((got.parts == answer_parts{"why not", "", {}, false}));
    CHECK(got.end.finish == finish_reason::length);
    co_await running.close();
}

CO_TEST_CASE("an answer has the same parts however the model cuts it into tokens")
{
    std::string const text = "<think>\nWhy? \xe6\xbc\xa2\n</think>\n\nI look <b>.\n<tool_call>\n"
                             R"({"name": "f", "arguments": {"a": "\u00fc)"
                             "\xc3\xbc"
                             R"("}})"
                             "\n</tool_call>\n<tool_call>{broken</tool_call> end <think";
    answer_parser parser({answer_style::reasoning::think, answer_style::calls::hermes});
    auto expected = parser.push(text);
    expected += parser.finish();
    CHECK(expected.calls.size() == 1);
    CHECK(expected.malformed);
    std::mt19937 random(3);
    for (std::size_t round = 0; round < 40; ++round) {
        strings pieces;
        for (std::size_t at = 0; at < text.size();) {
            auto const size = round == 0 ? 1 : 1 + random() % (1 + round);
            pieces.push_back(text.substr(at, size));
            at += size;
        }
        auto const got = co_await read_from(rt, says(think_template, std::move(pieces)), offering(question()));
        CAPTURE(round);
        CHECK((got.parts == expected));
    }
}

CO_TEST_CASE("several choices have their own parts, and log-probabilities of every token")
{
    strings const pieces{"<think>", "why", "</think>", "be", "cause"};
    tiny_file file(scripted_model(says(think_template, pieces, {"<think>", "</think>"})));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto what = question();
    what.choices = 3;
    what.logprobs = 1;
    auto answer = co_await running.submit(what);
    std::vector<answer_parts> parts(3);
    std::vector<std::size_t> tokens(3);
    for (;;) {
        auto got = co_await answer.next();
        if (!got) break;
        auto const c = static_cast<std::size_t>(got->choice);
        for (auto const& token : got->tokens)
            CHECK(token.top.size() == 1);
        tokens[c] += got->tokens.size();
        parts[c] += std::move(*got);
    }
    for (std::size_t c = 0; c < 3; ++c) {
        CHECK((parts[c] == answer_parts{"why", "because", {}, false}));
        CHECK(static_cast<std::int64_t>(tokens[c]) + 1 == answer.result().choices[c].tokens); // the end has no piece
    }
    co_await running.close();
}

// Each prompt ends between the places of two answers.
CO_TEST_CASE("a loop of calls: each answer is a turn as it came, and the results find their calls")
{
    auto model = says(think_template, {"<think>", "look", "</think>", "<tool_call>", R"({"name": "f",)",
                                       R"( "arguments": {"x": 1}})", "</tool_call>"});
    model.answers.push_back({250, {"<tool_call>", R"({"name": "g"})", "</tool_call>"}});
    model.answers.push_back({400, {"It ", "is", " 21."}});
    tiny_file file(scripted_model(model));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto what = offering(question());
    std::vector<std::string> asked;
    answer_parts last;
    for (int turn = 0; turn < 5; ++turn) {
        auto got = co_await read(running, what);
        last = got.parts;
        if (last.calls.empty()) break;
        chat_message said{"assistant", last.text, last.reasoning, last.calls};
        what.messages.push_back(std::move(said));
        for (auto const& call : last.calls) {
            asked.push_back(call.name + call.arguments + call.id);
            chat_message result{"tool", "result of " + call.name};
            result.call_id = call.id;
            what.messages.push_back(std::move(result));
        }
    }
    CHECK(asked == strings{R"(f{"x": 1}call00000)", "g{}call00001"});
    CHECK((last == answer_parts{"", "It is 21.", {}, false}));
    auto const prompt = running.info().text->decode(running.prompt_of(what));
    CHECK(prompt.find("<think>look</think><tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>") !=
          prompt.npos);
    CHECK(prompt.find("result of f (f call00000)") != prompt.npos);
    CHECK(prompt.find("result of g (g call00001)") != prompt.npos);
    co_await running.close();
}

CO_TEST_CASE("a request says whether the model thinks, and more that its template asks for")
{
    tiny_file file(scripted_model(says(think_template, {"yes"})));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto what = question();
    auto const ends = [&](std::string_view with) {
        return running.info().text->decode(running.prompt_of(what)).ends_with(with);
    };
    CHECK(ends("assistant\n"));
    what.think = true;
    CHECK(ends("assistant\n"));
    what.think = false;
    CHECK(ends("assistant\n<think></think>"));
    what.extra_json = R"({"enable_thinking": true})"; // the more exact of the two
    CHECK(ends("assistant\n"));
    what.extra_json = "[";
    auto const bad = co_await as_result(running.submit(what));
    CHECK(bad.error() == errc::invalid_argument);
    what.extra_json.clear();
    what.tools_json = "{}";
    auto const none = co_await as_result(running.submit(what));
    CHECK(none.error() == errc::invalid_argument);
    co_await running.close();
}

CO_TEST_CASE("a cancelled answer does not show what was held back")
{
    strings pieces{"<tool_call>", R"({"name": "f"})"};
    pieces.insert(pieces.end(), 300, " ");
    tiny_file file(scripted_model(says(think_template, pieces)));
    auto running = co_await open(rt, tiny_engine(file.path()));
    auto answer = co_await running.submit(offering(question()));
    answer_parts all;
    std::size_t tokens = 0;
    for (;;) {
        auto got = co_await answer.next();
        if (!got) break;
        tokens += got->tokens.size();
        all += std::move(*got);
        if (tokens > place + 50) answer.cancel();
    }
    CHECK((all == answer_parts{}));
    CHECK(answer.result().choices[0].finish == finish_reason::cancelled);
    co_await running.close();
}
