#pragma once

#include <plait/actors/clock.hpp>
#include <plait/apps/bench/peer.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/model/weights.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plait::bench {

/// What `plait-bench model` measures.
struct model_bench {
    std::filesystem::path model;
    std::vector<unsigned> threads;                     ///< an engine for each; never empty once parsed
    std::int64_t prompt = 512;                         ///< tokens of the prefill row
    std::int64_t generate = 128;                       ///< tokens of the decode rows, after the first
    std::vector<std::int64_t> batches{1, 2, 4, 8, 16}; ///< sequences that decode at once, a row for each
    int repetitions = 5;
    duration idle = std::chrono::seconds(5); ///< how long the engine idles; zero leaves the row out
    numerics mode = numerics::native;
    kv_type kv = kv_type::f16;
    std::vector<peer> beside; ///< measured by turns with plait
    bool json = false;
};

/// A command line: what to do, or what to print and the exit status.
struct command_line {
    std::optional<model_bench> given;
    std::string output; ///< for standard output
    std::string error;  ///< for standard error
    int status = 0;
};

command_line parse(int count, char const* const* arguments);

} // namespace plait::bench
