#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait::bench {

/// What another engine has for a row.
struct rival {
    std::string name;
    std::vector<double> samples;
    std::optional<double> times; ///< a target of the row: this many times the rival's middle sample, or better
};

/// One measured figure.
struct row {
    std::string name; ///< "pp512"
    std::string unit; ///< "tok/s"
    unsigned threads = 0;
    std::vector<double> samples; ///< in the order in which they were measured; never empty
    std::vector<rival> beside;
    std::optional<double> target;
    bool more_is_better = true;
};

/// The least, the middle (of an even number the mean of the middle two) and the greatest sample.
struct spread {
    double least = 0, middle = 0, greatest = 0;
};
spread spread_of(std::vector<double> samples);

/// The target in the row's unit, if it has one; the strictest, if it has several.
std::optional<double> target_of(row const& r);

/// Whether the middle sample reaches the target; true without one.
bool met(row const& r);

/// What the rows are about.
struct heading {
    struct fact {
        std::string name; ///< for programs
        std::string text;
    };
    struct number {
        std::string name;
        std::int64_t value = 0;
    };
    std::vector<fact> facts;     ///< a line each
    std::vector<number> numbers; ///< for programs only
};

/// For people: a line for each row.
std::string to_table(heading const& what, std::vector<row> const& rows);

/// The same for programs: {the facts and numbers by their names, "rows": [{"name", "unit", "threads", "min", "median",
/// "max", "samples", "target", "result", "beside"}]}; "target" and "result" ("met" or "missed") where there is a
/// target; "beside", where something was measured beside it: [{"name", "min", "median", "max", "samples", "ratio"}].
std::string to_json(heading const& what, std::vector<row> const& rows);

} // namespace plait::bench
