#include <plait/actors/runtime.hpp>
#include <plait/apps/bench/measure.hpp>
#include <plait/apps/bench/options.hpp>
#include <plait/apps/bench/report.hpp>

#include <cstdio>
#include <exception>
#include <string>

namespace {

using namespace plait;

void run(bench::model_bench what)
{
    auto const json = what.json;
    runtime home;
    // A row can take half a minute; progress is for whoever waits, results are for standard output.
    auto report = [](std::string const& doing) { std::fprintf(stderr, "plait-bench: %s\n", doing.c_str()); };
    auto const out = home.run(bench::measure(home, std::move(what), report));
    auto const text = json ? bench::to_json(out.what, out.rows) : bench::to_table(out.what, out.rows);
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) throw error(errc::io, "standard output");
}

} // namespace

int main(int argc, char** argv)
{
    try {
        auto line = bench::parse(argc, argv);
        std::fputs(line.output.c_str(), stdout);
        std::fputs(line.error.c_str(), stderr);
        if (!line.given) return line.status;
        run(std::move(*line.given));
        return 0;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "plait-bench: %s\n", e.what());
        return 1;
    }
}
