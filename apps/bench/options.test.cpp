#include <plait/apps/bench/options.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <vector>

using namespace plait;
using namespace plait::bench;

namespace {

command_line parse_words(std::initializer_list<char const*> words)
{
    std::vector<char const*> all{"plait-bench"};
    all.insert(all.end(), words);
    return parse(static_cast<int>(all.size()), all.data());
}

} // namespace

TEST_CASE("a model alone is measured with every default")
{
    auto line = parse_words({"model", "--model", "x.gguf"});
    REQUIRE(std::holds_alternative<model_bench>(line.given));
    auto const& given = std::get<model_bench>(line.given);
    CHECK(given.model == "x.gguf");
    CHECK(given.threads.size() == 1);
    CHECK(given.threads.front() >= 1);
    CHECK(given.prompt == 512);
    CHECK(given.generate == 128);
    CHECK(given.batches == std::vector<std::int64_t>{1, 2, 4, 8, 16});
    CHECK(given.repetitions == 5);
    CHECK(given.idle == std::chrono::seconds(5));
    CHECK(!given.json);
}

TEST_CASE("every option reaches the measurement")
{
    auto line =
        parse_words({"model",      "--model",  "x.gguf",  "--threads",  "1,2",           "--prompt", "64",
                     "--generate", "16",       "--batch", "1,3",        "--repetitions", "2",        "--idle",
                     "0.5",        "--kv",     "q8",      "--numerics", "f32",           "--beside", "one=/usr/bin",
                     "--beside",   "two=here", "--json",  "--trace",    "t.json"});
    REQUIRE(std::holds_alternative<model_bench>(line.given));
    auto const& given = std::get<model_bench>(line.given);
    CHECK(given.trace == "t.json");
    CHECK(given.threads == std::vector<unsigned>{1, 2});
    CHECK(given.prompt == 64);
    CHECK(given.generate == 16);
    CHECK(given.batches == std::vector<std::int64_t>{1, 3});
    CHECK(given.repetitions == 2);
    CHECK(given.idle == std::chrono::milliseconds(500));
    CHECK(given.kv == kv_type::q8);
    CHECK(given.mode == numerics::f32);
    REQUIRE(given.beside.size() == 2);
    CHECK(given.beside[0].name == "one");
    CHECK(given.beside[0].programs == "/usr/bin");
    CHECK(given.beside[1].programs == "here");
    CHECK(given.json);
}

TEST_CASE("a wrong command line says what is wrong and ends in 2")
{
    for (auto const& words :
         std::vector<std::vector<char const*>>{{"plait-bench"},
                                               {"plait-bench", "model"},
                                               {"plait-bench", "model", "--model", "x", "--threads", "0"},
                                               {"plait-bench", "model", "--model", "x", "--batch", "a"},
                                               {"plait-bench", "model", "--model", "x", "--beside", "/usr/bin"},
                                               {"plait-bench", "model", "--model", "x", "--no-such"},
                                               {"plait-bench", "runtime", "--rounds", "0"},
                                               {"plait-bench", "runtime", "--scale", "0"},
                                               {"plait-bench", "runtime", "--headers", "/no/such/folder"},
                                               {"plait-bench", "runtime", "--only"},
                                               {"plait-bench", "runtime", "--model", "x"},
                                               {"plait-bench", "weave", "--rounds", "0"},
                                               {"plait-bench", "weave", "--tp", "2"},
                                               {"plait-bench", "weave", "--model", "/no/such/file"}}) {
        auto line = parse(static_cast<int>(words.size()), words.data());
        CHECK(std::holds_alternative<std::monostate>(line.given));
        CHECK(line.status == 2);
        CHECK(!line.error.empty());
    }
}

TEST_CASE("help goes to standard output and is no failure")
{
    auto line = parse_words({"model", "--help"});
    CHECK(std::holds_alternative<std::monostate>(line.given));
    CHECK(line.status == 0);
    CHECK(line.output.find("pp512") != std::string::npos);
    CHECK(line.error.empty());
    auto other = parse_words({"runtime", "--help"});
    CHECK(std::holds_alternative<std::monostate>(other.given));
    CHECK(other.status == 0);
    for (auto const* word :
         {"--only", "--rounds", "--scale", "--headers", "--json", "PLAIT_BENCH_PEERS", "Skynet", "Exit status"})
        CHECK(other.output.find(word) != std::string::npos);
}

TEST_CASE("the runtime alone is measured with every default")
{
    auto line = parse_words({"runtime"});
    REQUIRE(std::holds_alternative<runtime_bench>(line.given));
    auto const& given = std::get<runtime_bench>(line.given);
    CHECK(given.only.empty());
    CHECK(given.rounds == 31);
    CHECK(given.scale == 1);
    CHECK(exists(given.headers / "plait/actors/actors.hpp"));
    CHECK(!given.json);
}

TEST_CASE("every option reaches the measurement of the runtime")
{
    auto line = parse_words(
        {"runtime", "--only", "ask,tree", "--rounds", "3", "--scale", "0.5", "--headers", "/usr", "--json"});
    REQUIRE(std::holds_alternative<runtime_bench>(line.given));
    auto const& given = std::get<runtime_bench>(line.given);
    CHECK(given.only == std::vector<std::string>{"ask", "tree"});
    CHECK(given.rounds == 3);
    CHECK(given.scale == 0.5);
    CHECK(given.headers == "/usr");
    CHECK(given.json);
}

TEST_CASE("weaving alone is measured with every default, and with every option")
{
    auto line = parse_words({"weave"});
    REQUIRE(std::holds_alternative<weave_bench>(line.given));
    auto const& given = std::get<weave_bench>(line.given);
    CHECK(given.only.empty());
    CHECK(given.rounds == 15);
    CHECK(given.scale == 1);
    CHECK(given.model.empty());
    CHECK(given.tensor.empty());
    CHECK(!given.json);
    auto full = parse_words({"weave", "--only", "turn,sum", "--rounds", "3", "--scale", "0.5", "--model", "/dev/null",
                             "--tp", "3,9", "--json"});
    REQUIRE(std::holds_alternative<weave_bench>(full.given));
    auto const& all = std::get<weave_bench>(full.given);
    CHECK(all.only == std::vector<std::string>{"turn", "sum"});
    CHECK(all.rounds == 3);
    CHECK(all.scale == 0.5);
    CHECK(all.model == "/dev/null");
    CHECK(all.tensor == std::vector<std::int32_t>{3, 9});
    CHECK(all.json);
}
