#include <plait/apps/convert/options.hpp>

#include <plait/model/files/model_files.hpp>

#include <plait/tests/support/child_program.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

using namespace plait;
using converting::command_line;

namespace {

command_line parsed(std::vector<char const*> arguments)
{
    arguments.insert(arguments.begin(), "plait-convert");
    return converting::parse(static_cast<int>(arguments.size()), arguments.data(), "1.2.3");
}

void check_refused(std::vector<char const*> const& arguments, char const* named)
{
    auto const line = parsed(arguments);
    CHECK(!line.given);
    CHECK(line.status == converting::exit_usage);
    CHECK(line.error.find(named) != std::string::npos);
}

} // namespace

TEST_CASE("two paths are all that a conversion needs")
{
    auto const line = parsed({"in", "out.gguf"});
    REQUIRE(line.given);
    CHECK(line.given->in == "in");
    CHECK(line.given->out == "out.gguf");
    CHECK(!line.given->how.type);
    CHECK(!line.given->how.name);
}

TEST_CASE("a type and a name arrive")
{
    auto const line = parsed({"in", "out.gguf", "--type", "bf16", "--name", "Small"});
    REQUIRE(line.given);
    CHECK(line.given->how.type == ggml_type::bf16);
    CHECK(line.given->how.name == "Small");
    CHECK(!parsed({"in", "out.gguf", "--type", "keep"}).given->how.type);
}

TEST_CASE("a wrong command line is refused in one line that names what is wrong")
{
    check_refused({}, "IN");
    check_refused({"in"}, "OUT");
    check_refused({"", "out"}, "IN");
    check_refused({"in", ""}, "OUT");
    check_refused({"in", "out", "--type", "q6_k"}, "--type");
    check_refused({"in", "out", "more"}, "more");
}

TEST_CASE("help and version go to standard output")
{
    CHECK(parsed({"--help"}).output.find("Hugging Face folder") != std::string::npos);
    CHECK(parsed({"--version"}).output.find("plait-convert 1.2.3") != std::string::npos);
}

TEST_CASE("the program converts a folder, and says what failed")
{
    char const* const bin = test::environment("PLAIT_BIN");
    if (bin == nullptr) {
        MESSAGE("skipped: not found; ctest says where the programs are");
        return;
    }
    test::temporary_folder const folder;
    auto const program = std::string(bin) + "/plait-convert";
    auto const out = (folder.path() / "model.gguf").string();
    test::child_program done(program, {test::test_data("families/llama").string(), out, "--type", "f16"});
    CHECK(done.line().find("model.gguf: 21 tensors") != std::string::npos);
    CHECK(done.end() == 0);
    CHECK(open_model(out).tensors().tensor("output.weight").type == ggml_type::f16);
    test::child_program failed(program, {(folder.path() / "none").string(), out});
    CHECK(failed.line().find("none: cannot be opened") != std::string::npos);
    CHECK(failed.end() == converting::exit_failure);
}
