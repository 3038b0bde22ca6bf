// Thoughts and calls of tools, as a person and as a script see them.
#include <plait/tests/chat/process.hpp>
#include <plait/tests/support/scripted_model.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <fstream>

using namespace plait::test;

namespace {

using strings = std::vector<std::string>;

/// Of a model that thinks: it refuses thoughts in the history, and skips its thoughts by what it adds to the prompt.
constexpr auto thinker =
    "{% for m in messages %}"
    "{% if 'why' in m.content or m.reasoning_content %}{{ raise_exception('thoughts') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{{ '.' * 200 }}{% endif %}{# <tool_call> #}";

/// A model that writes, its program, and a folder.
class desk {
public:
    explicit desk(scripted_model_options const& model)
        : file_(scripted_model(model).bytes())
    {
    }

    strings arguments(strings more) const
    {
        more.insert(more.begin(), {"--model", file_.path().string(), "--threads", "1"});
        return more;
    }
    outcome run(strings more) const
    {
        piped_chat chat(arguments(std::move(more)), {home()});
        return chat.finish();
    }
    std::filesystem::path const& home() const noexcept { return folder_.path(); }
    std::string write(std::string const& name, std::string_view content) const
    {
        auto const path = home() / name;
        std::ofstream(path) << content;
        return path.string();
    }

private:
    temporary_folder folder_;
    temporary_file file_;
};

scripted_model_options model(std::vector<scripted_answer> answers)
{
    scripted_model_options out;
    out.chat_template = thinker;
    out.control = {"<think>", "</think>"};
    out.answers = std::move(answers);
    return out;
}

scripted_model_options thinking()
{
    return model({{120, {"<think>", "\n", "why\x1b", "\n", "</think>", "\n\n", "because"}},
                  {200, {"Again", "\n"}},
                  {400, {"At once"}}});
}

scripted_model_options calling()
{
    return model({{200, {"I look.", "<tool_call>", R"({"name": "f", "arguments": {"a": "\u001b"}})", "</tool_call>"}}});
}

constexpr auto call = R"({"name": "f", "arguments": {"a": "\u001b"}, "id": "call00000"})"
                      "\n";

} // namespace

TEST_CASE("a script gets the answer without the thoughts that led to it")
{
    desk const d(thinking());
    auto const r = d.run({"--prompt", "hello"});
    CHECK(r.status == 0);
    CHECK(r.error == "");
    CHECK(r.output == "because\n");
}

TEST_CASE("a model that need not think is asked not to, and thoughts that come nevertheless are hidden")
{
    desk const d(thinking());
    auto const r = d.run({"--prompt", "hello", "--no-reasoning"});
    CHECK(r.status == 0);
    CHECK(r.output == "At once\n");

    auto deaf = thinking();
    deaf.chat_template = "{{ messages[0].content }}{# <think> #}";
    desk const other(deaf);
    terminal_chat chat(other.arguments({"--prompt", "hello", "--no-reasoning"}), other.home());
    auto const screen = chat.finish();
    CHECK(screen.status == 0);
    CHECK(screen.output.find("why") == std::string::npos);
    CHECK(screen.output.find("because") != std::string::npos);
}

TEST_CASE("calls are lines of JSON where tools are offered, and text elsewhere")
{
    desk const d(calling());
    auto const tools = d.write("tools.json", R"([{"type": "function", "function": {"name": "f"}}])");
    auto const r = d.run({"--prompt", "hello", "--tools", tools});
    CHECK(r.status == 0);
    CHECK(r.error == "");
    CHECK(r.output == std::string("I look.\n") + call);
    CHECK(d.run({"--prompt", "hello"}).output.starts_with("I look.<tool_call>{"));
}

TEST_CASE("a file of tools that can't be read, or is no array, ends the program before the model is asked")
{
    desk const d(calling());
    for (auto const* const content : {"", "{}", "[", "\"x\"", "[\xff]"}) {
        CAPTURE(content);
        auto const r = d.run({"--prompt", "hello", "--tools", d.write("bad.json", content)});
        CHECK(r.status == 1);
        CHECK(r.output == "");
        CHECK(r.error.find("bad.json: not a JSON array") != std::string::npos);
        CHECK(std::count(r.error.begin(), r.error.end(), '\n') == 1);
    }
    auto const long_one = d.run({"--prompt", "x", "--tools", d.write("long.json", std::string(1 << 21, ' '))});
    CHECK(long_one.status == 1);
    CHECK(long_one.error.find("long.json: longer") != std::string::npos);
    auto const none = d.run({"--prompt", "hello", "--tools", (d.home() / "none.json").string()});
    CHECK(none.status == 1);
    CHECK(none.error.find("none.json") != std::string::npos);

    auto plain = calling();
    plain.chat_template.clear();
    desk const other(plain);
    auto const tools = other.write("tools.json", "[]");
    auto const r = other.run({"--prompt", "hello", "--tools", tools});
    CHECK(r.status == 1);
    CHECK(r.error.find("--tools: the model has no chat template") != std::string::npos);
}

TEST_CASE("a person sees thoughts dimmed and harmless, and the conversation goes on without them")
{
    desk const d(thinking());
    terminal_chat chat(d.arguments({}), d.home());
    REQUIRE(chat.shows("> "));
    chat.type("hello\r");
    REQUIRE(chat.shows("\033[2mwhy"));
    REQUIRE(chat.shows("\\x1b"));
    REQUIRE(chat.shows("\033[0m\r\n\r\nbecause\r\n"));
    REQUIRE(chat.shows("> "));
    chat.type("hello " + std::string(100, 'x') + "\r"); // behind the first answer's place
    REQUIRE(chat.shows("Again\r\n"));
    REQUIRE(chat.shows("> "));
    chat.type("/exit\r");
    CHECK(chat.finish().status == 0);
    CHECK(chat.all().find("template failed") == std::string::npos);
}

TEST_CASE("an interrupt among thoughts leaves no dim terminal")
{
    auto endless = thinking();
    endless.answers = {{120, strings(500, "why ")}};
    endless.answers[0].pieces.insert(endless.answers[0].pieces.begin(), "<think>");
    desk const d(endless);
    terminal_chat chat(d.arguments({"--prompt", "hello"}), d.home());
    REQUIRE(chat.shows("why"));
    chat.send_signal(SIGINT);
    auto const screen = chat.finish();
    CHECK((screen.status == 130 || screen.status == 0)); // an answer can be quicker than a signal
    CHECK(screen.output.rfind("\033[2m") < screen.output.rfind("\033[0m"));
}
