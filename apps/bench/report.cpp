#include <plait/apps/bench/report.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
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

/// How plait does beside another, and what it should.
std::string compared(row const& r, rival const& other, double ratio)
{
    if (r.more_is_better) return "plait has " + shown(ratio) + " times this";
    if (!std::isfinite(ratio) || ratio == 0) return "";
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

} // namespace

spread spread_of(std::vector<double> samples)
{
    std::ranges::sort(samples);
    auto const half = samples.size() / 2;
    auto middle = samples[half];
    if (samples.size() % 2 == 0) middle = (samples[half - 1] + middle) / 2;
    return {samples.front(), middle, samples.back()};
}

std::optional<double> target_of(row const& r)
{
    auto out = r.target;
    for (auto const& other : r.beside) {
        if (!other.times) continue;
        auto const one = *other.times * spread_of(other.samples).middle;
        out = !out ? one : r.more_is_better ? std::max(*out, one) : std::min(*out, one);
    }
    return out;
}

bool met(row const& r)
{
    auto const middle = spread_of(r.samples).middle;
    auto const target = target_of(r);
    return !target || (r.more_is_better ? middle >= *target : middle <= *target);
}

std::string to_table(heading const& what, std::vector<row> const& rows)
{
    std::string out;
    for (auto const& one : what.facts)
        out += one.text + "\n";
    int width = 14;
    for (auto const& r : rows)
        width = std::max(width, static_cast<int>(r.name.size()));
    auto line = [&out, width](std::string const& name, std::string const& threads, std::string const& middle,
                              std::string const& unit, std::string const& least, std::string const& greatest,
                              std::string const& target) {
        char text[256];
        std::snprintf(text, sizeof text, "%-*s %7s %10s %-6s %10s %10s   %s", width, name.c_str(), threads.c_str(),
                      middle.c_str(), unit.c_str(), least.c_str(), greatest.c_str(), target.c_str());
        std::string_view trimmed = text;
        out += trimmed.substr(0, trimmed.find_last_not_of(' ') + 1);
        out += '\n';
    };
    line("", "threads", "median", "", "min", "max", "target");
    for (auto const& r : rows) {
        auto const s = spread_of(r.samples);
        std::string target = "-";
        if (auto const t = target_of(r)) target = (r.more_is_better ? ">= " : "<= ") + shown(*t) + " " + verdict(r);
        line(r.name, std::to_string(r.threads), shown(s.middle), r.unit, shown(s.least), shown(s.greatest), target);
        for (auto const& other : r.beside) {
            auto const o = spread_of(other.samples);
            line("  " + other.name, "", shown(o.middle), r.unit, shown(o.least), shown(o.greatest),
                 compared(r, other, s.middle / o.middle));
        }
    }
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
        auto const s = spread_of(r.samples);
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
            one["ratio"] = s.middle / spread_of(other.samples).middle;
            if (other.times) one["target"] = *other.times;
            entry["beside"].push_back(std::move(one));
        }
        out["rows"].push_back(std::move(entry));
    }
    return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace plait::bench
