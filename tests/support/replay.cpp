#include <plait/tests/support/replay.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <doctest/doctest.h>

namespace plait::test {

std::string replay_command(std::string const& setting)
{
    std::error_code ignored;
    auto const program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    auto const nearby = program.lexically_relative(PLAIT_SOURCE_DIR);
    bool const inside = !nearby.empty() && *nearby.begin() != "..";
    auto const& test = *doctest::getContextOptions()->currentTest;
    // A comma would end the filter and a quote the argument; a question mark stands for any character.
    std::string name = test.m_name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c) && c != ' ' && c != '_' && c != '-'; }, '?');
    return setting + " " + (inside ? nearby : program).string() + (test.m_skip ? " --no-skip" : "") + " -tc=\"" + name +
           "\"";
}

} // namespace plait::test
