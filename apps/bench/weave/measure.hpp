#pragma once

#include <plait/apps/bench/report.hpp>
#include <plait/apps/bench/runtime/contest.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace plait::bench {

/// What `plait-bench weave` measures.
struct weave_bench {
    std::vector<std::string> only; ///< rows whose names contain one of these; empty for all
    int rounds = 15;
    double scale = 1;                 ///< multiplies the operations of every turn
    std::filesystem::path model;      ///< whose resident memory is measured; empty: of none
    std::vector<std::int32_t> tensor; ///< on so many ranks; empty: the degrees up to 8 that the model takes
    bool json = false;
};

/// The machine, and how all is measured.
heading heading_of(weave_bench const& what);

/// The width of the names of the rows that there will be.
int width_of(weave_bench const& what);

/// What there is to measure, all of it that is wanted. Throws what opening the model throws.
std::vector<contest> contests(weave_bench const& what);

/// Every row, in order. `begins` hears what is being measured, `ends` each row when it is there; both may be empty.
std::vector<row> measure(weave_bench const& what, std::function<void(std::string const&)> const& begins,
                         std::function<void(row const&)> const& ends);

} // namespace plait::bench
