#pragma once

#include <plait/apps/bench/report.hpp>
#include <plait/apps/bench/runtime/meter.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait::bench {

/// Somebody who does a workload.
struct contestant {
    std::string name;
    std::function<sample(std::int64_t)> turn;
    std::int64_t size = 0;            ///< operations of one turn
    std::optional<double> times = {}; ///< the target: this many times its time, at most
};

/// A row of the table: plait, and whoever does the same beside it.
struct contest {
    std::string name;
    std::string unit = "ns";
    unsigned threads = 1;
    contestant own;
    std::vector<contestant> rivals;
    std::optional<double> target = {};
    bool more_is_better = false;
    int most_rounds = 1000;                      ///< for rows that take long, or whose figure is the same every time
    bool show_allocations = false;               ///< in a row of their own
    std::optional<double> most_allocations = {}; ///< the target of that row, which is shown then
};

/// A row of plait's, `own` without a name, that nobody is beside yet.
contest among(std::string name, unsigned threads, contestant own, std::string unit = "ns");

/// Does `what` in rounds; in each everybody has one turn. First everybody has a turn in which allocations are counted.
/// `scale` multiplies the sizes.
std::vector<row> hold(contest const& what, int rounds, double scale);

/// Holds them all. `begins` hears what is being measured, `ends` each row when it is there; both may be empty.
std::vector<row> hold(std::vector<contest> const& all, int rounds, double scale,
                      std::function<void(std::string const&)> const& begins,
                      std::function<void(row const&)> const& ends);

/// The names of its rows.
std::vector<std::string> rows_of(contest const& what);
/// The width of the names of all these rows.
int width_of(std::vector<contest> const& all);

/// The compiler that built this program, and how.
std::string built();

/// Every contest that this program can hold on this machine. `headers` is the folder with plait/actors/actors.hpp whose
/// compiling is timed; without it, or without the compiler, nothing is compiled.
std::vector<contest> contests(std::filesystem::path const& headers = {});

} // namespace plait::bench
