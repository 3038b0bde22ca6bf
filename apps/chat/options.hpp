#pragma once

#include <plait/apps/parsed_arguments.hpp>
#include <plait/engine/options.hpp>
#include <plait/engine/request.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait::chat {

/// What the program's exit status says.
enum exit_status : int {
    exit_ok = 0,
    exit_failure = 1,      ///< a file, the input, the memory or the engine failed
    exit_usage = 2,        ///< the command line is wrong
    exit_interrupted = 130 ///< Ctrl-C; another signal that ends the program gives 128 + its number
};

/// The command line, checked as far as it can be without the model.
struct settings {
    engine_options engine;
    sampling_options sampling;
    std::int64_t max_tokens = 0;
    std::vector<std::string> stop;
    std::optional<std::string> system; ///< may be empty; none: what the template does without one
    std::optional<std::string> prompt;
    std::optional<std::string> tools; ///< the file that has what the model may call
    bool reasoning = true;            ///< the model may think first, and a person sees it
    bool show_plan = false;
    std::string trace; ///< the file that is to tell what the engine and its devices did; may be empty
};

using command_line = plait::parsed_arguments<settings>;

command_line parse(int count, char const* const* arguments, std::string const& version);

/// A size such as 123456, 512MiB or 1.5GiB in bytes; K, M, G and T alone mean the same powers of 1024. Empty where
/// `text` is something else, or not from 1 to 2^62.
std::optional<std::int64_t> parse_bytes(std::string_view text);

} // namespace plait::chat
