#include <plait/tests/house/lint/coroutine_rules.hpp>
#include <plait/tests/house/lint/house_rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>

using namespace plait::house;

namespace {

using marks = std::set<std::pair<int, std::string>>;

std::string read(std::filesystem::path const& path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// What the example says of itself: `// as: path` on its first line, `finds: rule` on each line that breaks one.
std::string pretended_path(std::string const& content)
{
    auto first = content.find("as: ") + 4;
    return content.substr(first, content.find_first_of(";\n", first) - first);
}

marks expected(std::string const& content)
{
    marks result;
    std::istringstream lines(content);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        if (auto at = line.find("finds: "); at != std::string::npos) {
            result.emplace(number, line.substr(at + 7));
        }
    }
    return result;
}

marks found(source const& file)
{
    marks result;
    for (auto check : {check_house, check_coroutines}) {
        for (auto const& finding : check(file)) {
            result.emplace(finding.line, finding.rule);
        }
    }
    return result;
}

std::string to_text(marks const& all)
{
    std::string result;
    for (auto const& [line, rule] : all) {
        result += std::to_string(line) + ' ' + rule + '\n';
    }
    return result;
}

marks findings_of(std::string path, std::string content)
{
    return found(source(std::move(path), std::move(content)));
}

} // namespace

TEST_CASE("the lint finds what the bad examples mark, and nothing in the good ones")
{
    std::set<std::string> rules;
    int good = 0;
    for (auto const& entry : std::filesystem::directory_iterator(PLAIT_SOURCE_DIR "/tests/house/lint/examples")) {
        auto const name = entry.path().filename().string();
        CAPTURE(name);
        auto const content = read(entry.path());
        source const file(pretended_path(content), content);
        auto const wanted = expected(content);
        CHECK(to_text(found(file)) == to_text(wanted));
        bool const is_bad = name.find(".bad.") != std::string::npos;
        CHECK(wanted.empty() == !is_bad);
        good += !is_bad;
        for (auto const& [line, rule] : wanted) {
            rules.insert(rule);
        }
    }
    CHECK(good >= 10);
    CHECK(rules == std::set<std::string>{"accessor", "asio-bridge", "await-in-condition", "braces-beside-await",
                                         "choice-beside-await", "coroutine-local", "coroutine-parameter", "floor",
                                         "lambda-beside-await", "macro", "pragma-once", "publish-last",
                                         "runtime-only"});
}

TEST_CASE("a header has at most 400 lines and a source at most 900")
{
    auto lines = [](int count) {
        std::string text = "#pragma once\n";
        for (int i = 1; i < count; ++i) {
            text += "int x" + std::to_string(i) + ";\n";
        }
        return text;
    };
    CHECK(findings_of("kv/a.hpp", lines(400)).empty());
    CHECK(findings_of("kv/a.hpp", lines(401)) == marks{{400, "length"}});
    CHECK(findings_of("kv/a.cpp", lines(900)).empty());
    CHECK(findings_of("kv/a.cpp", lines(901)) == marks{{900, "length"}});
}

TEST_CASE("text in comments, strings and raw strings is no code, whatever quotes and brackets it has")
{
    char const* content = R"code(
task<> f(int n)
{
    auto a = "\"if (co_await x) {"; // if (co_await x) { ' " (
    auto b = '"', c = '\'', d = '{';
    auto e = R"x(while (co_await x) )" { )x";
    auto f = u8R"(}}})";
    auto g = 1'000'000 + 0x1'F;
    /* for (; co_await x;) { */
    if (co_await g) { }
}
)code";
    CHECK(findings_of("engine/a.cpp", content) == marks{{10, "await-in-condition"}});
}

TEST_CASE("a file whose brackets do not match is read to its end all the same")
{
    for (char const* content : {"", "}", ")]}", "{{{", "if (co_await", "[", "x = [", "\"abc", "R\"(", "/*", "#",
                                "task<", "await_suspend(", "array<", "a ? ", "co_await f ? 1", "get_"}) {
        CAPTURE(content);
        source file("engine/a.hpp", content);
        CHECK(file.lines() <= 1);
        CHECK_NOTHROW(check_house(file));
        CHECK_NOTHROW(check_coroutines(file));
    }
}
