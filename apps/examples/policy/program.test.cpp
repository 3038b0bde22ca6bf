#include <doctest/doctest.h>

#include <plait/tests/support/child_program.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <fstream>
#include <iterator>
#include <string>

using namespace plait::test;

TEST_CASE("two schedules run, and what ran when is written where it is asked for")
{
    tiny_file model;
    temporary_folder folder;
    auto const file = folder.path() / "trace.json";
    child_program program(PLAIT_PROGRAM, {model.path().string(), "--trace", file.string()});
    CHECK(!program.line_with("tenants in turn").empty());
    CHECK(program.end() == 0);
    std::ifstream in(file);
    std::string const text(std::istreambuf_iterator<char>(in), {});
    CHECK(text.find("\"name\":\"request\"") != text.npos);
    CHECK(text.find("\"name\":\"attention\"") != text.npos);
    CHECK(child_program(PLAIT_PROGRAM, {}).end() == 2);
}
