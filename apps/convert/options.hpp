#pragma once

#include <plait/apps/parsed_arguments.hpp>
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

using command_line = plait::parsed_arguments<settings>;

command_line parse(int count, char const* const* arguments, std::string const& version);

} // namespace plait::converting
