#pragma once

#include <optional>
#include <string>

namespace plait {

/// A command line is settings, or something to print and a status to leave with.
template<class Settings>
struct parsed_arguments {
    std::optional<Settings> given;
    std::string output; ///< for standard output
    std::string error;  ///< one line for standard error
    int status = 0;
};

} // namespace plait
