// Published chat templates against Python's jinja2.
#include <sstream>

#include <doctest/doctest.h>

#include <plait/model/files/gguf.hpp>
#include <plait/tests/support/template_golden.hpp>

using namespace plait;
using nlohmann::ordered_json;

namespace {

render_input input_of(ordered_json const& conversation)
{
    render_input input;
    input.messages_json = conversation.at("messages").dump();
    input.add_generation_prompt = conversation.at("add_generation_prompt").get<bool>();
    if (!conversation.at("tools").is_null()) input.tools_json = conversation.at("tools").dump();
    input.extra_json = conversation.at("extra").dump();
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    input.now = test::golden_date();
    return input;
}

void check(std::string const& name, std::string const& source)
{
    static auto const conversations = test::template_golden("conversations.json");
    static auto const renderings = test::template_golden("renderings.json");
    auto const& expected = renderings.at(name);
    CHECK(expected.size() == conversations.size());
    for (auto const& [title, conversation] : conversations.items()) {
        CAPTURE(name);
        CAPTURE(title);
        auto const& golden = expected.at(title);
        auto const r = test::render(source, input_of(conversation));
        if (golden.contains("text")) {
            CHECK(r.error == "");
            CHECK(r.text == golden.at("text").get<std::string>());
        } else {
            CAPTURE(golden.at("error").get<std::string>());
            CHECK(r.error != "");
        }
    }
}

} // namespace

TEST_CASE("published chat templates render 54 conversations as jinja2 does, or fail where it fails")
{
    auto const renderings = test::template_golden("renderings.json");
    for (auto const& [name, expected] : renderings.items()) {
        if (name == "smollm2") continue; // in the model's file, below
        auto const path = test::shared_data("templates/" + name + ".jinja");
        if (!path) {
            MESSAGE("skipped: not found: ", name);
            continue;
        }
        std::ostringstream source;
        source << std::ifstream(*path, std::ios::binary).rdbuf();
        check(name, source.str());
    }
}

TEST_CASE("the template inside a model file renders as jinja2 does")
{
    auto const path = test::model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!path) {
        MESSAGE("skipped: not found: smollm2-135m-instruct-q4_1.gguf");
        return;
    }
    check("smollm2", std::string(gguf_file::open(*path).string("tokenizer.chat_template")));
}
