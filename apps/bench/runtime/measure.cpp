#include <plait/apps/bench/runtime/measure.hpp>

#include <plait/actors/runtime.hpp>
#include <plait/apps/bench/runtime/contest.hpp>

#include <algorithm>

namespace plait::bench {

namespace {

bool wanted(runtime_bench const& what, std::string const& name)
{
    return what.only.empty() || std::ranges::any_of(what.only, [&](std::string const& part) {
               return name.find(part) != std::string::npos;
           });
}

heading heading_of(runtime_bench const& what)
{
    heading out;
    out.facts = {{"machine", std::to_string(runtime::available_cpus()) + " processors"},
                 {"compiler", __VERSION__},
                 {"rounds", std::to_string(what.rounds) + " rounds by turns, the medians of them"}};
    return out;
}

} // namespace

runtime_measured measure(runtime_bench const& what, std::function<void(std::string const&)> const& report)
{
    runtime_measured out;
    out.what = heading_of(what);
    for (auto const& one : contests()) {
        if (!wanted(what, one.name)) continue;
        if (report) report(one.name);
        for (auto& row : hold(one, what.rounds, what.scale))
            out.rows.push_back(std::move(row));
    }
    return out;
}

} // namespace plait::bench
