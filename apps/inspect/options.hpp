#pragma once

#include <plait/apps/parsed_arguments.hpp>
#include <plait/model/model_overrides.hpp>
#include <plait/model/numerics.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace plait::inspecting {

/// What the program's exit status says.
enum exit_status : int {
    exit_ok = 0,
    exit_failure = 1, ///< a file, the input, the memory or the engine failed, or --check found something
    exit_usage = 2,   ///< the command line is wrong
};

enum class action : std::uint8_t { show, tokenize, detokenize, render, check, score };

/// The command line, checked as far as it can be without the model.
struct settings {
    std::filesystem::path model;
    action what = action::show;
    bool all_tensors = false;
    std::string input = "-";    ///< of tokenize, render and score: a file, or "-", standard input
    bool parse_special = false; ///< of tokenize
    bool add_special = false;
    std::optional<std::filesystem::path> chat_template; ///< of render: instead of the file's
    std::optional<std::filesystem::path> tools;
    std::string extra; ///< JSON
    std::optional<std::string> bos, eos;
    std::optional<std::chrono::sys_seconds> now;
    bool answer_next = true;
    model_overrides overrides;  ///< of show and score
    std::int64_t context = 512; ///< of score: tokens of a window
    bool per_token = false;
    unsigned threads = 0;
    numerics mode = numerics::native;
    std::string trace; ///< of score: the file that is to tell what ran when; may be empty
};

using command_line = plait::parsed_arguments<settings>;

command_line parse(int count, char const* const* arguments, std::string const& version);

/// A time such as 2026-11-30 or 2026-11-30T08:15:00; empty where `text` is something else.
std::optional<std::chrono::sys_seconds> parse_time(std::string_view text);

} // namespace plait::inspecting
