#include <plait/apps/inspect/options.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace plait;
using inspecting::action;
using inspecting::command_line;

namespace {

command_line parsed(std::vector<char const*> arguments)
{
    arguments.insert(arguments.begin(), "plait-inspect");
    return inspecting::parse(static_cast<int>(arguments.size()), arguments.data(), "1.2.3");
}

void check_refused(std::vector<char const*> const& arguments, char const* named)
{
    auto const line = parsed(arguments);
    CHECK(!line.given);
    CHECK(line.status == inspecting::exit_usage);
    CAPTURE(line.error);
    CHECK(line.error.find(named) != std::string::npos);
}

} // namespace

TEST_CASE("a file alone is shown")
{
    auto const line = parsed({"model.gguf"});
    REQUIRE(line.given);
    CHECK(line.given->model == "model.gguf");
    CHECK(line.given->what == action::show);
    CHECK(!line.given->all_tensors);
}

TEST_CASE("an action has its input and what belongs to it")
{
    auto line = parsed({"m", "--tokenize", "-", "--special", "--add-special"});
    REQUIRE(line.given);
    CHECK(line.given->what == action::tokenize);
    CHECK(line.given->input == "-");
    CHECK(line.given->parse_special);
    CHECK(line.given->add_special);
    line = parsed({"m", "--render", "chat.json", "--tools", "tools.json", "--extra", "{}", "--bos", "", "--now",
                   "2026-11-30T08:15:00", "--no-answer"});
    REQUIRE(line.given);
    CHECK(line.given->what == action::render);
    CHECK(line.given->input == "chat.json");
    CHECK(line.given->tools == "tools.json");
    CHECK(line.given->bos == "");
    CHECK(!line.given->eos);
    CHECK(!line.given->answer_next);
    CHECK(line.given->now->time_since_epoch().count() == 1796026500);
    line = parsed({"m", "--score", "text", "--context", "256", "--per-token", "--numerics", "f32"});
    REQUIRE(line.given);
    CHECK(line.given->what == action::score);
    CHECK(line.given->context == 256);
    CHECK(line.given->per_token);
    CHECK(line.given->mode == numerics::f32);
    line = parsed({"m", "--rope-base", "5e5", "--rope-scaling", "linear", "--rope-factor", "4"});
    REQUIRE(line.given);
    CHECK(line.given->overrides.rope_base == 5e5);
    CHECK(line.given->overrides.rope_scaling == rope_stretch::linear);
    CHECK(line.given->overrides.rope_factor == 4);
}

TEST_CASE("what makes no sense is refused by name")
{
    check_refused({}, "FILE");
    check_refused({""}, "FILE");
    check_refused({"m", "--check", "--detokenize"}, "--check");
    check_refused({"m", "--special"}, "--tokenize");
    check_refused({"m", "--context", "512"}, "--score");
    check_refused({"m", "--score", "-", "--context", "3"}, "--context");
    check_refused({"m", "--render", "-", "--now", "yesterday"}, "--now");
    check_refused({"m", "--nonsense"}, "--nonsense");
    check_refused({"m", "--rope-base", "1"}, "--rope-base");
    check_refused({"m", "--rope-factor", "2"}, "--rope-scaling");
    check_refused({"m", "--check", "--rope-base", "5000"}, "--check");
}

TEST_CASE("help and the version are output, not errors")
{
    auto const help = parsed({"--help"});
    CHECK(help.status == 0);
    CHECK(help.output.find("--tokenize") != std::string::npos);
    CHECK(help.output.find("Exit status:") != std::string::npos);
    CHECK(parsed({"--version"}).output == "plait-inspect 1.2.3\n");
}

TEST_CASE("times are dates, with or without the time of day")
{
    CHECK(inspecting::parse_time("1970-01-02")->time_since_epoch().count() == 86400);
    CHECK(inspecting::parse_time("1970-01-01T01:00")->time_since_epoch().count() == 3600);
    CHECK(inspecting::parse_time("1970-01-01 00:00:07")->time_since_epoch().count() == 7);
    for (auto const* wrong :
         {"", "1970", "1970-13-01", "2026-02-29", "1970-01-01T24:00", "1970-01-01T00:00:00Z", "a-b-c"})
        CHECK(!inspecting::parse_time(wrong));
}
