#include <plait/apps/bench/report.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace plait::bench {

namespace {

std::string shown(double value)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : 1, value);
    return text;
}

void add_spread(nlohmann::ordered_json& to, std::vector<double> const& samples)
{
    auto const s = spread_of(samples);
    to["min"] = s.least;
    to["median"] = s.middle;
    to["max"] = s.greatest;
    to["samples"] = samples;
}

char const* verdict(row const& r)
{
    return met(r) ? "met" : "missed";
}

double ratio_of(row const& r, rival const& other)
{
    return spread_of(ratios_of(r, other)).middle;
}

/// How plait does beside another, and what it should.
std::string compared(row const& r, rival const& other)
{
    auto const ratio = ratio_of(r, other);
    if (!std::isfinite(ratio)) return "";
    bool const is_time = r.unit.starts_with("ns") || r.unit.starts_with("us") || r.unit.starts_with("ms");
    if (r.more_is_better || !is_time) return "plait has " + shown(ratio) + " times this";
    if (ratio == 0) return "";
    auto const verdict = other.times && ratio <= *other.times ? " met)" : " missed)";
    // "times as fast" where plait is, or should be, the faster one.
    if (other.times ? *other.times <= 1 : ratio < 1) {
        auto out = "plait is " + shown(1 / ratio) + " times as fast";
        if (other.times) out += " (>= " + shown(1 / *other.times) + verdict;
        return out;
    }
    auto out = "plait takes " + shown(ratio) + " times this";
    if (other.times) out += " (<= " + shown(*other.times) + verdict;
    return out;
}

constexpr std::string_view indent = "  "; // of who is beside a row

/// One line of the table, by its columns.
std::string line(int width, std::array<std::string, 7> const& cells)
{
    auto const& [name, threads, middle, unit, least, greatest, target] = cells;
    char text[256];
    std::snprintf(text, sizeof text, "%-*s %7s %10s %-6s %10s %10s   %s", width, name.c_str(), threads.c_str(),
                  middle.c_str(), unit.c_str(), least.c_str(), greatest.c_str(), target.c_str());
    std::string_view const trimmed = text;
    return std::string(trimmed.substr(0, trimmed.find_last_not_of(' ') + 1)) + "\n";
}

} // namespace

spread spread_of(std::vector<double> samples)
{
    std::ranges::sort(samples);
    auto const half = samples.size() / 2;
    auto middle = samples[half];
    if (samples.size() % 2 == 0) middle = (samples[half - 1] + middle) / 2;
    return {samples.front(), middle, samples.back()};
}

std::vector<double> ratios_of(row const& r, rival const& other)
{
    if (r.samples.size() != other.samples.size())
        return {spread_of(r.samples).middle / spread_of(other.samples).middle};
    std::vector<double> out;
    out.reserve(r.samples.size());
    for (std::size_t i = 0; i < r.samples.size(); ++i)
        out.push_back(r.samples[i] / other.samples[i]);
    return out;
}

std::optional<double> target_of(row const& r)
{
    auto out = r.target;
    for (auto const& other : r.beside) {
        if (!other.times) continue;
        auto const one = *other.times * spread_of(r.samples).middle / ratio_of(r, other);
        out = !out ? one : r.more_is_better ? std::max(*out, one) : std::min(*out, one);
    }
    return out;
}

bool met(row const& r)
{
    auto const reaches = [&r](double value, double target) {
        return r.more_is_better ? value >= target : value <= target;
    };
    return (!r.target || reaches(spread_of(r.samples).middle, *r.target)) &&
           std::ranges::all_of(
               r.beside, [&](rival const& other) { return !other.times || reaches(ratio_of(r, other), *other.times); });
}

int width_of(std::string_view name, std::vector<rival> const& beside)
{
    auto width = std::max<std::size_t>(14, name.size());
    for (auto const& other : beside)
        width = std::max(width, indent.size() + other.name.size());
    return static_cast<int>(width);
}

std::string table_head(heading const& what, int width)
{
    std::string out;
    for (auto const& one : what.facts)
        out += one.text + "\n";
    return out + line(width, {"", "threads", "median", "", "min", "max", "target"});
}

std::string table_lines(row const& r, int width)
{
    auto const s = spread_of(r.samples);
    std::string target = "-";
    if (auto const t = target_of(r)) target = (r.more_is_better ? ">= " : "<= ") + shown(*t) + " " + verdict(r);
    auto out = line(
        width, {r.name, std::to_string(r.threads), shown(s.middle), r.unit, shown(s.least), shown(s.greatest), target});
    for (auto const& other : r.beside) {
        auto const o = spread_of(other.samples);
        out += line(width, {std::string(indent) + other.name, "", shown(o.middle), r.unit, shown(o.least),
                            shown(o.greatest), compared(r, other)});
    }
    return out;
}

std::string to_table(heading const& what, std::vector<row> const& rows)
{
    auto width = width_of({}, {});
    for (auto const& r : rows)
        width = std::max(width, width_of(r.name, r.beside));
    auto out = table_head(what, width);
    for (auto const& r : rows)
        out += table_lines(r, width);
    return out;
}

std::string to_json(heading const& what, std::vector<row> const& rows)
{
    nlohmann::ordered_json out;
    for (auto const& one : what.facts)
        out[one.name] = one.text;
    for (auto const& one : what.numbers)
        out[one.name] = one.value;
    out["rows"] = nlohmann::ordered_json::array();
    for (auto const& r : rows) {
        nlohmann::ordered_json entry;
        entry["name"] = r.name;
        entry["unit"] = r.unit;
        entry["threads"] = r.threads;
        add_spread(entry, r.samples);
        if (auto const target = target_of(r)) {
            entry["target"] = *target;
            entry["result"] = verdict(r);
        }
        for (auto const& other : r.beside) {
            nlohmann::ordered_json one;
            one["name"] = other.name;
            add_spread(one, other.samples);
            one["ratios"] = ratios_of(r, other);
            one["ratio"] = ratio_of(r, other);
            if (other.times) one["target"] = *other.times;
            entry["beside"].push_back(std::move(one));
        }
        out["rows"].push_back(std::move(entry));
    }
    return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace plait::bench
