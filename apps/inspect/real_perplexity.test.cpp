#include <plait/apps/inspect/perplexity.hpp>
#include <plait/apps/inspect/texts.hpp>

#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>

#include <filesystem>

using namespace plait;
using namespace plait::test;

CO_TEST_CASE("the small model foretells a text as well as llama.cpp's does")
{
    auto const model = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!model) {
        MESSAGE("skipped: not found: smollm2-135m-instruct-q4_1.gguf");
        co_return;
    }
    inspecting::settings how;
    how.model = *model;
    auto text = inspecting::read_input((std::filesystem::path(PLAIT_SOURCE_DIR) / "LICENSE").string());
    std::string said;
    std::function<void(std::string const&)> hear = [&](std::string const& more) { said += more; };
    co_await inspecting::score_text(rt, how, std::move(text), hear);
    CAPTURE(said);
    REQUIRE(said.starts_with("perplexity "));
    // llama-perplexity -c 512 of llama.cpp 0c1e57098, in the same windows.
    constexpr double peer = 15.9289;
    auto const found = std::stod(said.substr(std::string("perplexity ").size()));
    CHECK(found == doctest::Approx(peer).epsilon(0.005));
    CHECK(said.find("windows of 512") != said.npos);
}
