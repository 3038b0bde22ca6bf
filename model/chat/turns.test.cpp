#include <doctest/doctest.h>

#include <plait/model/chat/turns.hpp>
#include <plait/tests/support/template_golden.hpp>

using namespace plait;

namespace {

/// A question, thoughts and a call, its result, an answer.
std::vector<chat_message> conversation()
{
    std::vector<chat_message> out;
    out.push_back({"user", "How warm?"});
    out.push_back({"assistant", "", "I look.", {{"weather", R"({"city":"Bern"})", "call00000"}}});
    out.push_back({"tool", "21", {}, {}, "call00000"});
    out.push_back({"assistant", "It is 21."});
    return out;
}

std::string rendered(std::string const& source, std::vector<chat_message> messages)
{
    render_input input;
    input.messages = std::move(messages);
    return chat_template::parse(source).render(input);
}

std::string refused(std::vector<chat_message> messages)
{
    try {
        rendered("{{ messages }}", std::move(messages));
    } catch (error const& e) {
        CHECK(e.condition() == errc::invalid_argument);
        return e.what();
    }
    return {};
}

} // namespace

TEST_CASE("a template sees the parts of a turn by Hugging Face's names, and only those that are there")
{
    CHECK(rendered("{{ messages | tojson }}", conversation()) ==
          R"([{"role": "user", "content": "How warm?"}, )"
          R"({"role": "assistant", "content": "", "reasoning_content": "I look.", "thinking": "I look.", )"
          R"("tool_calls": [{"id": "call00000", "type": "function", )"
          R"("function": {"name": "weather", "arguments": {"city": "Bern"}}}]}, )"
          R"({"role": "tool", "content": "21", "tool_call_id": "call00000", "name": "weather"}, )"
          R"({"role": "assistant", "content": "It is 21."}])");
}

TEST_CASE("a template that takes arguments as text, or turns without content, gets them so")
{
    std::string const calls = "{% for m in messages %}{% for c in m.tool_calls or [] %}";
    std::string const end = "{% endfor %}{% endfor %}";
    CHECK(rendered(calls + "{{ c.function.name + ' ' + c.function.arguments }}" + end, conversation()) ==
          R"(weather {"city": "Bern"})");
    CHECK(rendered("{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
                   "{{ c.function | tojson }}{% endfor %}{% else %}{{ m.content }};{% endif %}{% endfor %}",
                   conversation()) == R"(How warm?;{"name": "weather", "arguments": {"city": "Bern"}}21;It is 21.;)");
    CHECK(rendered("{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
                   "{{ c.function.name + c.function.arguments }}{% endfor %}{% endif %}{% endfor %}",
                   conversation()) == R"(weather{"city": "Bern"})");
}

TEST_CASE("calls are in the text of a turn where a template has no place for them")
{
    auto messages = conversation();
    CHECK(rendered("{% for m in messages %}{{ m.content }};{% endfor %}", messages) ==
          "How warm?;<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>;21;It is "
          "21.;");
    messages[1].content = "Well:";
    messages[1].calls.push_back({"f", "", "call00001"});
    CHECK(
        rendered("{{ messages[1].content }}", messages) ==
        "Well:\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>\n<tool_call>\n"
        "{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
}

TEST_CASE("nothing of a call, a result or a thought is the template's own text")
{
    auto messages = conversation();
    messages[1].calls[0].name = "<|im_end|>";
    messages[2].content = messages[1].reasoning = "<|im_end|>";
    render_input input;
    input.messages = messages;
    auto const prompt = chat_template::parse("<|im_end|>{% for m in messages %}{{ m.reasoning_content }}{{ m.name }}"
                                             "{{ m.tool_calls }}{{ m.content }}{% endfor %}")
                            .render_parts(input);
    REQUIRE(prompt.trusted.size() == 1);
    CHECK(prompt.trusted[0].begin == 0);
    CHECK(prompt.trusted[0].end == 10);
}

TEST_CASE("a call that is no JSON, or no UTF-8, is refused and named")
{
    auto messages = conversation();
    for (auto const* const arguments : {"{", "[1]", "7", "{\"a\": \xff}"}) {
        messages[1].calls[0].arguments = arguments;
        CHECK(refused(messages).find("messages[1].calls[0].arguments") != std::string::npos);
    }
    messages = conversation();
    messages[1].calls[0].name = "\xff";
    CHECK(refused(messages).find("messages[1].calls[0].name") != std::string::npos);
    messages = conversation();
    messages[1].reasoning = "\xff";
    CHECK(refused(messages).find("messages[1].reasoning") != std::string::npos);
    messages = conversation();
    messages[2].call_id = "\xff";
    CHECK(refused(messages).find("messages[2].call_id") != std::string::npos);
    messages = conversation();
    messages[1].calls[0].arguments = std::string(100'000, '[');
    CHECK(refused(messages).find("messages[1].calls[0].arguments") != std::string::npos);
}

TEST_CASE("a call is one line of JSON, whatever its strings hold")
{
    CHECK(to_json({"f", R"({"a":"x\ny"})", "id"}) == R"({"name": "f", "arguments": {"a": "x\ny"}, "id": "id"})");
    CHECK(to_json({"f\n\x1b", "", ""}) == R"({"name": "f\n\u001b", "arguments": {}, "id": ""})");
    CHECK_THROWS_AS(to_json({"\xff", "", ""}), error);
    CHECK_THROWS_AS(to_json({"f", "[]", ""}), error);
}

TEST_CASE("the variables of thinking are there where it was said")
{
    render_input input;
    std::string const source = "{{ enable_thinking is defined }} {{ enable_thinking }} {{ thinking }}";
    auto const program = chat_template::parse(source);
    CHECK(program.render(input) == "False  ");
    input.think = false;
    CHECK(program.render(input) == "True False False");
    input.think = true;
    CHECK(program.render(input) == "True True True");
    input.extra_json = R"({"thinking": "a little"})";
    CHECK(program.render(input) == "True True a little");
}
