#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/model/measure.hpp>
#include <plait/apps/bench/options.hpp>
#include <plait/apps/bench/report.hpp>
#include <plait/streams/trace_file.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace {

using namespace plait;

/// A row can take half a minute; progress is for whoever waits, results are for standard output.
void report(std::string const& doing)
{
    std::fprintf(stderr, "plait-bench: %s\n", doing.c_str());
}

void print(std::string const& text)
{
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) throw error(errc::io, "standard output");
}

void run(bench::model_bench what)
{
    auto const json = what.json;
    trace_file trace(what.trace);
    what.record = trace.record();
    runtime home;
    auto const out = home.run(bench::measure(home, std::move(what), report));
    trace.write();
    auto const head = bench::heading_of(out.what);
    print(json ? bench::to_json(head, out.rows) : bench::to_table(head, out.rows));
}

/// Of the runtime, or of weaving.
void run_contests(auto const& what)
{
    auto const head = bench::heading_of(what);
    if (what.json) {
        print(bench::to_json(head, bench::measure(what, report, {})));
        return;
    }
    // All of it takes minutes: each row is shown as soon as it is there.
    auto const width = bench::width_of(what);
    print(bench::table_head(head, width));
    bench::measure(what, report, [width](bench::row const& one) { print(bench::table_lines(one, width)); });
}

} // namespace

int main(int argc, char** argv)
{
    try {
        auto line = bench::parse(argc, argv);
        std::fputs(line.output.c_str(), stdout);
        std::fputs(line.error.c_str(), stderr);
        if (auto* const model = std::get_if<bench::model_bench>(&line.given)) {
            run(std::move(*model));
        } else if (auto const* const ours = std::get_if<bench::runtime_bench>(&line.given)) {
            run_contests(*ours);
        } else if (auto const* const woven = std::get_if<bench::weave_bench>(&line.given)) {
            run_contests(*woven);
        }
        return line.status;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "plait-bench: %s\n", e.what());
        return 1;
    }
}
