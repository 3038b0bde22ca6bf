// Published chat templates against Python's jinja2.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <plait/model/chat/answer_parser.hpp>
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

TEST_CASE("published chat templates tell the style of their models' answers")
{
    using reasoning = answer_style::reasoning;
    using calls = answer_style::calls;
    auto const folder = test::shared_data("templates");
    if (!folder) {
        MESSAGE("skipped: not found: templates");
        return;
    }
    std::map<std::string, answer_style> const expected{
        {"CohereForAI-c4ai-command-r-plus-tool_use", {reasoning::none, calls::command_r}},
        {"GLM-4.6", {reasoning::think, calls::glm}},
        {"HuggingFaceTB-SmolLM3-3B", {reasoning::think, calls::none}}, // this version of it knows no tools
        {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", {reasoning::none, calls::hermes}},
        {"Qwen-Qwen2.5-7B-Instruct", {reasoning::none, calls::hermes}},
        {"Qwen-Qwen3-0.6B", {reasoning::think, calls::hermes}},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", {reasoning::think, calls::deepseek}},
        {"google-gemma-2-2b-it", {}},
        {"ibm-granite-granite-3.3-2B-Instruct", {reasoning::response, calls::granite}},
        {"meta-llama-Llama-3.1-8B-Instruct", {reasoning::none, calls::llama}},
        {"meta-llama-Llama-3.2-3B-Instruct", {reasoning::none, calls::llama}},
        {"microsoft-Phi-3.5-mini-instruct", {}},
        {"mistralai-Mistral-Nemo-Instruct-2407", {reasoning::none, calls::mistral}},
        {"openai-gpt-oss-120b", {reasoning::harmony, calls::harmony}}};
    for (auto const& [name, style] : expected) {
        CAPTURE(name);
        CHECK((answer_style_of(read(*folder / (name + ".jinja"))) == style));
    }
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

TEST_CASE("published templates that know tools show a call, its arguments and its result as their models expect")
{
    struct family {
        char const* name;
        char const* call;     ///< how the turn of the assistant holds it
        char const* thoughts; ///< that led to it; null: the template leaves them out
    };
    for (auto const& f : std::vector<family>{
             {"Qwen-Qwen2.5-7B-Instruct",
              "assistant\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
              nullptr},
             {"Qwen-Qwen3-0.6B",
              "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
              "<think>\nI look.\n</think>"},
             {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
              "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>", nullptr},
             {"GLM-4.6", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n</tool_call>",
              "<think>I look.</think>"},
             {"meta-llama-Llama-3.1-8B-Instruct",
              "{\"name\": \"weather\", \"parameters\": {\"city\": \"Bern\"}}<|eot_id|>", nullptr},
             {"meta-llama-Llama-3.2-3B-Instruct",
              "{\"name\": \"weather\", \"parameters\": {\"city\": \"Bern\"}}<|eot_id|>", nullptr},
             {"mistralai-Mistral-Nemo-Instruct-2407",
              "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}, \"id\": \"call00000\"}]",
              nullptr},
             {"CohereForAI-c4ai-command-r-plus-tool_use", "\"tool_name\": \"weather\"", nullptr},
             {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
              "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": "
              "\"Bern\"}\n```<｜tool▁call▁end｜>",
              nullptr},
             {"openai-gpt-oss-120b",
              "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{\"city\": "
              "\"Bern\"}<|call|>",
              "<|channel|>analysis<|message|>I look.<|end|>"},
             // No place for calls: they are in the text.
             {"HuggingFaceTB-SmolLM3-3B", "<tool_call>\n{\"name\": \"weather\"", nullptr},
             {"ibm-granite-granite-3.3-2B-Instruct", "<tool_call>\n{\"name\": \"weather\"", nullptr}}) {
        CAPTURE(f.name);
        auto const path = test::shared_data(std::string("templates/") + f.name + ".jinja");
        if (!path) {
            MESSAGE("skipped: not found: ", f.name);
            continue;
        }
        std::ostringstream source;
        source << std::ifstream(*path, std::ios::binary).rdbuf();
        render_input input;
        input.bos_token = "<s>";
        input.eos_token = "</s>";
        input.now = test::golden_date();
        input.tools_json = R"([{"type": "function", "function": {"name": "weather", "description": "It.", "parameters":
            {"type": "object", "properties": {"city": {"type": "string", "description": "Where."}}}}}])";
        input.messages.push_back({"user", "How warm?"});
        input.messages.push_back({"assistant", "", "I look.", {{"weather", R"({"city": "Bern"})", "call00000"}}});
        input.messages.push_back({"tool", "21 degrees", {}, {}, "call00000"});
        auto const has = [](std::string const& text, std::string_view part) { return text.find(part) != text.npos; };
        auto const program = chat_template::parse(source.str());
        auto prompt = program.render(input);
        CHECK(has(prompt, f.call));
        CHECK(has(prompt, "21 degrees"));
        CHECK(has(prompt, f.thoughts != nullptr ? f.thoughts : "I look.") == (f.thoughts != nullptr));

        // When the person has spoken again, nobody sees the thoughts any more.
        input.messages.push_back({"assistant", "It is 21.", "Done."});
        input.messages.push_back({"user", "Thanks."});
        prompt = program.render(input);
        CHECK(has(prompt, "It is 21."));
        CHECK(!has(prompt, "I look."));
        CHECK(!has(prompt, "Done."));
    }
}
