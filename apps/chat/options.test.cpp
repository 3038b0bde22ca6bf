#include <plait/apps/chat/options.hpp>

#include <doctest/doctest.h>

using namespace plait;
using namespace plait::chat;

namespace {

command_line parsed(std::vector<char const*> arguments)
{
    arguments.insert(arguments.begin(), "plait-chat");
    return parse(static_cast<int>(arguments.size()), arguments.data(), "1.2.3");
}

command_line with_model(std::vector<char const*> arguments)
{
    arguments.insert(arguments.begin(), {"--model", "m.gguf"});
    return parsed(std::move(arguments));
}

/// That it is refused as a whole, in one line that names the option.
void check_refused(std::vector<char const*> arguments, char const* named)
{
    auto const line = with_model(arguments);
    CAPTURE(arguments.front());
    CHECK(!line.given);
    CHECK(line.status == exit_usage);
    CHECK(line.output.empty());
    CHECK(line.error.find(named) != std::string::npos);
    CHECK(line.error.find('\n') == std::string::npos);
}

} // namespace

TEST_CASE("a model is all that has to be given")
{
    auto const line = with_model({});
    REQUIRE(line.given);
    auto const& s = *line.given;
    CHECK(s.engine.model == "m.gguf");
    CHECK(s.engine.threads == 0);
    CHECK(s.engine.context == 0);
    CHECK(s.engine.memory == 0);
    CHECK(s.engine.sequences == 1);
    CHECK(s.engine.spread == parallelism{});
    CHECK(s.engine.kv == kv_type::f16);
    CHECK(s.engine.mode == numerics::native);
    CHECK(!s.engine.quantize);
    CHECK(!s.prompt);
    CHECK(!s.system);
    CHECK(!s.sampling.seed);
    CHECK(!s.show_plan);
    CHECK(!s.tools);
    CHECK(s.reasoning);
    CHECK(s.max_tokens == 0);
}

TEST_CASE("every option arrives")
{
    auto const line = with_model({"--prompt",
                                  "hello",
                                  "--system",
                                  "be brief",
                                  "--tools",
                                  "tools.json",
                                  "--no-reasoning",
                                  "--temperature",
                                  "0.5",
                                  "--top-k",
                                  "7",
                                  "--top-p",
                                  "0.25",
                                  "--min-p",
                                  "0.125",
                                  "--repetition-penalty",
                                  "1.5",
                                  "--max-tokens",
                                  "9",
                                  "--seed",
                                  "18446744073709551615",
                                  "--threads",
                                  "3",
                                  "--context",
                                  "512",
                                  "--kv",
                                  "q8",
                                  "--numerics",
                                  "f32",
                                  "--memory",
                                  "1GiB",
                                  "--tp",
                                  "3",
                                  "--pp",
                                  "2",
                                  "--replicas",
                                  "4",
                                  "--sum-parts",
                                  "6",
                                  "--trace",
                                  "trace.json",
                                  "--plan",
                                  "--stop",
                                  "one",
                                  "--stop",
                                  "[a,b]"});
    REQUIRE_MESSAGE(line.given, line.error);
    auto const& s = *line.given;
    CHECK(s.tools == "tools.json");
    CHECK(!s.reasoning);
    CHECK(s.prompt == "hello");
    CHECK(s.system == "be brief");
    CHECK(s.sampling.temperature == 0.5f);
    CHECK(s.sampling.top_k == 7);
    CHECK(s.sampling.top_p == 0.25f);
    CHECK(s.sampling.min_p == 0.125f);
    CHECK(s.sampling.repetition_penalty == 1.5f);
    CHECK(s.max_tokens == 9);
    CHECK(s.sampling.seed == 18446744073709551615u);
    CHECK(s.engine.threads == 3);
    CHECK(s.engine.context == 512);
    CHECK(s.engine.kv == kv_type::q8);
    CHECK(s.engine.mode == numerics::f32);
    CHECK(s.engine.memory == std::int64_t{1} << 30);
    CHECK(s.engine.spread == parallelism{3, 2, 6});
    CHECK(s.engine.replicas == 4);
    CHECK(s.trace == "trace.json");
    CHECK(s.show_plan);
    CHECK(s.stop == std::vector<std::string>{"one", "[a,b]"});
}

TEST_CASE("what the model's files say of its rotation can be said otherwise")
{
    CHECK(with_model({}).given->engine.overrides == model_overrides());
    auto const line = with_model(
        {"--rope-base", "1e6", "--rope-scaling", "yarn", "--rope-factor", "2.5", "--original-context", "4096"});
    REQUIRE_MESSAGE(line.given, line.error);
    auto const& overrides = line.given->engine.overrides;
    CHECK(overrides.rope_base == 1e6);
    CHECK(overrides.rope_scaling == rope_stretch::yarn);
    CHECK(overrides.rope_factor == 2.5);
    CHECK(overrides.original_context == 4096);
    CHECK(with_model({"--rope-scaling", "none"}).given->engine.overrides.rope_scaling == rope_stretch::none);
    for (auto const* base : {"1", "0", "-5", "nan", "inf", "1e40", "ten"})
        check_refused({"--rope-base", base}, "--rope-base");
    check_refused({"--rope-scaling", "ntk"}, "--rope-scaling");
    check_refused({"--rope-scaling", "yarn", "--rope-factor", "0"}, "--rope-factor");
    check_refused({"--rope-factor", "2"}, "--rope-scaling");
    check_refused({"--original-context", "64"}, "--rope-scaling");
    check_refused({"--rope-scaling", "yarn", "--original-context", "0"}, "--original-context");
}

TEST_CASE("a value that begins with a dash is given with an equals sign")
{
    auto const line = with_model({"--prompt=-1 and --help", "--stop=-"});
    REQUIRE_MESSAGE(line.given, line.error);
    CHECK(line.given->prompt == "-1 and --help");
    CHECK(line.given->stop == std::vector<std::string>{"-"});
}

TEST_CASE("an option given twice has its last value, so a script's defaults can be changed")
{
    auto const line = with_model({"--system", "", "--temperature", "1", "--system", "be brief", "--temperature=0"});
    REQUIRE_MESSAGE(line.given, line.error);
    CHECK(line.given->system == "be brief");
    CHECK(line.given->sampling.temperature == 0);
}

TEST_CASE("values out of range are refused by the name of the option")
{
    check_refused({"--threads", "0"}, "--threads");
    check_refused({"--threads", "1025"}, "--threads");
    check_refused({"--threads", "two"}, "--threads");
    check_refused({"--threads=-1"}, "--threads");
    check_refused({"--temperature=-0.1"}, "--temperature");
    check_refused({"--temperature", "nan"}, "--temperature");
    check_refused({"--temperature", "inf"}, "--temperature");
    check_refused({"--temperature", "1x"}, "--temperature");
    check_refused({"--top-k=-1"}, "--top-k");
    check_refused({"--top-k", "1.5"}, "--top-k");
    check_refused({"--top-k", "4294967297"}, "--top-k");
    check_refused({"--top-p", "0"}, "--top-p");
    check_refused({"--top-p", "1.01"}, "--top-p");
    check_refused({"--min-p", "1.01"}, "--min-p");
    check_refused({"--min-p=-1"}, "--min-p");
    check_refused({"--repetition-penalty", "0"}, "--repetition-penalty");
    check_refused({"--max-tokens", "0"}, "--max-tokens");
    check_refused({"--seed=-1"}, "--seed");
    check_refused({"--seed", "18446744073709551616"}, "--seed");
    check_refused({"--context", "0"}, "--context");
    check_refused({"--memory", "0"}, "--memory");
    check_refused({"--memory", "12 parsecs"}, "--memory");
    check_refused({"--kv", "f64"}, "--kv");
    check_refused({"--numerics", "exact"}, "--numerics");
    CHECK(with_model({"--system", ""}).given->system == "");
    check_refused({"--prompt="}, "--prompt");
    check_refused({"--prompt", "a\xff"}, "--prompt");
    check_refused({"--system", "\xc3"}, "--system");
    check_refused({"--stop="}, "--stop");
}

TEST_CASE("options that are not known, and words that belong to none, are refused")
{
    check_refused({"--frobnicate"}, "--frobnicate");
    check_refused({"hello"}, "hello");
    check_refused({"--stop", "one", "two"}, "two");
    check_refused({"--\033[2J"}, "\\x1b[2J");
}

TEST_CASE("without a model there is nothing to do")
{
    auto const none = parsed({});
    CHECK(!none.given);
    CHECK(none.status == exit_usage);
    CHECK(none.error.find("--model") != std::string::npos);
    CHECK(parsed({"--model="}).status == exit_usage);
}

TEST_CASE("help and version go to standard output and are no failure")
{
    auto const help = parsed({"--help"});
    CHECK(!help.given);
    CHECK(help.status == exit_ok);
    CHECK(help.error.empty());
    for (auto const* part : {"--model", "--prompt", "--temperature", "--threads", "--plan", "Exit status", "130"})
        CHECK_MESSAGE(help.output.find(part) != std::string::npos, part);
    auto const version = parsed({"--version"});
    CHECK(version.output == "plait-chat 1.2.3\n");
    CHECK(version.status == exit_ok);
}

TEST_CASE("sizes are numbers with or without a unit")
{
    CHECK(parse_bytes("1") == 1);
    CHECK(parse_bytes("123456") == 123456);
    CHECK(parse_bytes("7B") == 7);
    CHECK(parse_bytes("2K") == 2048);
    CHECK(parse_bytes("2KiB") == 2048);
    CHECK(parse_bytes("1.5GiB") == std::int64_t{3} << 29);
    CHECK(parse_bytes("1T") == std::int64_t{1} << 40);
    for (auto const* bad :
         {"", "0", "-1", "1e3", "1 K", "K", "1Ki", "1KB", "1.2.3", "1Q", "nan", "9999999999999999999"})
        CHECK_MESSAGE(!parse_bytes(bad), bad);
}
