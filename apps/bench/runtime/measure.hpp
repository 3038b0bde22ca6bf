#pragma once

#include <plait/apps/bench/report.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace plait::bench {

/// Where this program's own build found <plait/...>.
std::filesystem::path own_headers();

/// What `plait-bench runtime` measures.
struct runtime_bench {
    std::vector<std::string> only; ///< rows whose names contain one of these; empty for all
    int rounds = 31;
    double scale = 1;                              ///< multiplies the operations of every turn
    std::filesystem::path headers = own_headers(); ///< has plait/actors/actors.hpp, whose compiling is timed
    bool json = false;
};

/// The machine, the peers, and how all is measured.
heading heading_of(runtime_bench const& what);

/// The width of the names of the rows that there will be.
int width_of(runtime_bench const& what);

/// Every row, in order. `begins` hears what is being measured, `ends` each row when it is there; both may be empty.
std::vector<row> measure(runtime_bench const& what, std::function<void(std::string const&)> const& begins,
                         std::function<void(row const&)> const& ends);

} // namespace plait::bench
