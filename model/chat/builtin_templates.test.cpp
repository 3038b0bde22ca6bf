#include <plait/model/chat/builtin_templates.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace plait;

namespace {

std::string rendered(bool first_generation, std::vector<chat_message> messages)
{
    model_spec spec;
    spec.architecture = "chatglm";
    spec.prefix = first_generation;
    render_input input;
    input.messages = std::move(messages);
    return chat_template::parse(std::string(builtin_template(spec))).render(input);
}

} // namespace

TEST_CASE("ChatGLM-6B's first question stands alone, and later ones are in rounds from 0")
{
    CHECK(rendered(true, {{"user", "你好"}}) == "你好");
    CHECK(rendered(true, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}) ==
          "[Round 0]\n问：a\n答：b\n[Round 1]\n问：c\n答：");
}

TEST_CASE("ChatGLM2's questions are in rounds from 1")
{
    CHECK(rendered(false, {{"user", "你好"}}) == "[Round 1]\n\n问：你好\n\n答：");
    CHECK(rendered(false, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}}) ==
          "[Round 1]\n\n问：a\n\n答：b\n\n[Round 2]\n\n问：c\n\n答：");
}

TEST_CASE("models that know no other roles say so, and other models have no template of ours")
{
    for (bool const first : {true, false})
        CHECK_THROWS_AS(rendered(first, {{"system", "x"}, {"user", "y"}}), error);
    model_spec spec;
    spec.architecture = "llama";
    CHECK(builtin_template(spec).empty());
}
