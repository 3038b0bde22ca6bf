#pragma once

#include <plait/apps/bench/report.hpp>

#include <functional>
#include <string>
#include <vector>

namespace plait::bench {

/// What `plait-bench runtime` measures.
struct runtime_bench {
    std::vector<std::string> only; ///< rows whose names contain one of these; empty for all
    int rounds = 31;
    double scale = 1; ///< multiplies the operations of every turn
    bool json = false;
};

/// Every row. `report` hears what is being measured, for people.
struct runtime_measured {
    heading what;
    std::vector<row> rows;
};
runtime_measured measure(runtime_bench const& what, std::function<void(std::string const&)> const& report);

} // namespace plait::bench
