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
    std::optional<double> times; ///< a target of the row: this many times what the rival has, or better
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

/// The row's samples over the rival's, round by round: whatever else the machine does meets both alike. One ratio, of
/// the medians, where one has more samples than the other.
std::vector<double> ratios_of(row const& r, rival const& other);

/// The target in the row's unit, if it has one; the strictest, if it has several. A multiple of a rival is as far from
/// the row's median as the median of the ratios is from it.
std::optional<double> target_of(row const& r);

/// Whether the median reaches the target; true without one.
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

/// For people, in parts for who prints them as they come: what is above the rows, and a row with a line for each rival.
/// All with the same width of the names: see `width_of`.
std::string table_head(heading const& what, int width);
std::string table_lines(row const& r, int width);
/// How wide the names are in a row of this name and these rivals.
int width_of(std::string_view name, std::vector<rival> const& beside);

/// The same, whole.
std::string to_table(heading const& what, std::vector<row> const& rows);

/// The same for programs: {the facts and numbers by their names, "rows": [{"name", "unit", "threads", "min", "median",
/// "max", "samples", "target", "result", "beside"}]}; "target" and "result" ("met" or "missed") where there is a
/// target; "beside", where something was measured beside it: [{"name", "min", "median", "max", "samples", "ratios",
/// "ratio"}], the last being the median of the one before.
std::string to_json(heading const& what, std::vector<row> const& rows);

} // namespace plait::bench
