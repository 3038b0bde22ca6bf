#include <plait/apps/bench/runtime/compile.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/bench/process.hpp>

#include <cstdio>

namespace plait::bench {

namespace {

/// What the shell says of `command`, which reads `input`; 0 is good.
int run(std::string const& command, std::string const& input)
{
    auto* const to = ::popen(command.c_str(), "w");
    if (to == nullptr) throw error(errc::io, command);
    auto const written = std::fputs(input.c_str(), to);
    auto const status = ::pclose(to);
    return written < 0 ? written : status;
}

} // namespace

bool has_compiler()
{
    static bool const there = run(std::string("command -v ") + compiler + " > /dev/null", {}) == 0;
    return there;
}

sample compile(std::string const& source, std::filesystem::path const& headers)
{
    // Asio 1.22 does not see by itself that this compiler has coroutines.
    auto const command = std::string(compiler) + " -std=c++20 -fsyntax-only -DASIO_HAS_CO_AWAIT " +
                         "-DASIO_HAS_STD_COROUTINE -I " + quoted(headers.string()) + " -x c++ -";
    meter m;
    if (run(command, source) != 0) throw error(errc::io, command + " failed");
    return {m.elapsed() / 1e6, 0};
}

} // namespace plait::bench
