#pragma once

#include <plait/apps/bench/model/options.hpp>
#include <plait/apps/bench/runtime/measure.hpp>
#include <plait/apps/bench/weave/measure.hpp>

#include <string>
#include <variant>

namespace plait::bench {

/// A command line: what to do, or what to print and the exit status.
struct command_line {
    std::variant<std::monostate, model_bench, runtime_bench, weave_bench> given;
    std::string output; ///< for standard output
    std::string error;  ///< for standard error
    int status = 0;
};

command_line parse(int count, char const* const* arguments);

} // namespace plait::bench
