#include <plait/apps/bench/report.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace plait::bench {

namespace {

std::string shown(double value)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", value < 10 ? 2 : 1, value);
    return text;
}

char const* verdict(row const& r)
{
    return met(r) ? "met" : "missed";
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

bool met(row const& r)
{
    auto const middle = spread_of(r.samples).middle;
    return !r.target || (r.more_is_better ? middle >= *r.target : middle <= *r.target);
}

std::string to_table(subject const& what, std::vector<row> const& rows)
{
    std::string out = what.model + "\n" + what.device + "\n";
    auto line = [&out](std::string const& name, std::string const& threads, std::string const& middle,
                       std::string const& unit, std::string const& least, std::string const& greatest,
                       std::string const& target) {
        char text[256];
        std::snprintf(text, sizeof text, "%-14s %7s %10s %-6s %10s %10s   %s", name.c_str(), threads.c_str(),
                      middle.c_str(), unit.c_str(), least.c_str(), greatest.c_str(), target.c_str());
        std::string_view trimmed = text;
        out += trimmed.substr(0, trimmed.find_last_not_of(' ') + 1);
        out += '\n';
    };
    line("", "threads", "median", "", "min", "max", "target");
    for (auto const& r : rows) {
        auto const s = spread_of(r.samples);
        std::string target = "-";
        if (r.target) target = (r.more_is_better ? ">= " : "<= ") + shown(*r.target) + " " + verdict(r);
        line(r.name, std::to_string(r.threads), shown(s.middle), r.unit, shown(s.least), shown(s.greatest), target);
    }
    return out;
}

std::string to_json(subject const& what, std::vector<row> const& rows)
{
    nlohmann::ordered_json out;
    out["model"] = what.model;
    out["device"] = what.device;
    out["file_bytes"] = what.file_bytes;
    out["rows"] = nlohmann::ordered_json::array();
    for (auto const& r : rows) {
        auto const s = spread_of(r.samples);
        nlohmann::ordered_json entry;
        entry["name"] = r.name;
        entry["unit"] = r.unit;
        entry["threads"] = r.threads;
        entry["min"] = s.least;
        entry["median"] = s.middle;
        entry["max"] = s.greatest;
        entry["samples"] = r.samples;
        if (r.target) {
            entry["target"] = *r.target;
            entry["result"] = verdict(r);
        }
        out["rows"].push_back(std::move(entry));
    }
    return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace plait::bench
