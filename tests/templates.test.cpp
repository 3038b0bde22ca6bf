// Published chat templates against Python's jinja2.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

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

ordered_json const& conversations()
{
    static auto const all = test::template_golden("conversations.json");
    return all;
}

ordered_json const& renderings()
{
    static auto const all = test::template_golden("renderings.json");
    return all;
}

std::string read(std::filesystem::path const& path)
{
    std::ostringstream source;
    source << std::ifstream(path, std::ios::binary).rdbuf();
    return source.str();
}

void check(std::string const& name, std::string const& source)
{
    auto const& expected = renderings().at(name);
    CHECK(expected.size() == conversations().size());
    int rendered = 0;
    for (auto const& [title, conversation] : conversations().items()) {
        CAPTURE(name);
        CAPTURE(title);
        auto const& golden = expected.at(title);
        auto const r = test::render(source, input_of(conversation));
        if (golden.contains("text")) {
            CHECK(r.error == "");
            CHECK(r.text == golden.at("text").get<std::string>());
            ++rendered;
        } else {
            auto const failure = golden.at("error").get<std::string>();
            CAPTURE(failure);
            CHECK(r.error != "");
            // raise_exception: what the template itself has to say.
            constexpr std::string_view raised = "TemplateError: ";
            if (failure.starts_with(raised)) CHECK(r.error.find(failure.substr(raised.size())) != std::string::npos);
        }
    }
    CHECK_MESSAGE(rendered >= 24, name);
}

/// The pieces of a user's text that would be control tokens of some template stand between two of these.
constexpr std::string_view fence = "\u00a7";

/// No piece between fences may lie in what the template itself wrote.
void check_forged(std::string const& name, std::string const& source)
{
    auto const parsed = chat_template::parse(source);
    int found = 0;
    for (auto const& [title, conversation] : conversations().items()) {
        if (!title.starts_with("control tokens") || !renderings().at(name).at(title).contains("text")) continue;
        CAPTURE(name);
        CAPTURE(title);
        auto const prompt = parsed.render_parts(input_of(conversation));
        for (auto at = prompt.text.find(fence); at != std::string::npos;) {
            auto const next = prompt.text.find(fence, at + fence.size());
            if (next == std::string::npos) break;
            auto const overlaps = [&](byte_range const& own) { return own.begin < next && own.end > at; };
            auto const between = prompt.text.substr(at, next - at);
            at = next;
            // From one message to the next there is what the template writes between them.
            if (between.find('\n') != std::string::npos || between.size() > 60) continue;
            CAPTURE(between);
            CHECK(std::none_of(prompt.trusted.begin(), prompt.trusted.end(), overlaps));
            ++found;
        }
    }
    CHECK_MESSAGE(found >= 40, name);
}

} // namespace

TEST_CASE("published chat templates render 74 conversations as jinja2 does, or fail where it fails")
{
    CHECK(conversations().size() == 74);
    auto const folder = test::shared_data("templates");
    if (!folder) {
        MESSAGE("skipped: not found: templates");
        return;
    }
    std::set<std::string> names;
    for (auto const& file : std::filesystem::directory_iterator(*folder)) {
        if (file.path().extension() != ".jinja") continue;
        auto const name = file.path().stem().string();
        CAPTURE(name);
        REQUIRE(renderings().contains(name)); // or the goldens are older than the folder
        check(name, read(file.path()));
        check_forged(name, read(file.path()));
        names.insert(name);
    }
    CHECK(names.size() + 1 == renderings().size()); // one more is in the model's file
}

TEST_CASE("the template inside a model file renders as jinja2 does")
{
    auto const path = test::model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!path) {
        MESSAGE("skipped: not found: smollm2-135m-instruct-q4_1.gguf");
        return;
    }
    std::string const source(gguf_file::open(*path).string("tokenizer.chat_template"));
    check("smollm2", source);
    check_forged("smollm2", source);
}
