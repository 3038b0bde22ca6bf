#pragma once

#include <plait/model/convert/convert.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace plait::converting {

/// What the program's exit status says.
enum exit_status : int {
    exit_ok = 0,
    exit_failure = 1, ///< a file or the memory failed
    exit_usage = 2,   ///< the command line is wrong
};

struct settings {
    std::filesystem::path in;
    std::filesystem::path out;
    convert_options how;
};

/// A command line is settings, or something to print and a status to leave with.
struct command_line {
    std::optional<settings> given;
    std::string output; ///< for standard output
    std::string error;  ///< for standard error
    int status = exit_ok;
};

command_line parse(int count, char const* const* arguments, std::string const& version);

} // namespace plait::converting
