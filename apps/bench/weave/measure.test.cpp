#include <plait/apps/bench/weave/measure.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/bench/runtime/peers/threads/threads.hpp>
#include <plait/apps/bench/runtime/processors.hpp>
#include <plait/apps/bench/weave/labour.hpp>
#include <plait/apps/bench/weave/workloads.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

using namespace plait::bench;
using namespace plait::test;

namespace {

std::vector<std::string> names_of(std::vector<contest> const& all)
{
    std::vector<std::string> out;
    for (auto const& one : all)
        out.push_back(one.name);
    return out;
}

} // namespace

TEST_CASE("every workload of weaving gives what it should, however small it is")
{
    weave_bench what;
    what.rounds = 2;
    what.scale = 0.01;
    auto const rows = measure(what, {}, {});
    REQUIRE(rows.size() == contests(what).size());
    for (auto const& one : rows) {
        CAPTURE(one.name);
        CHECK(one.samples.size() == 2);
        CHECK(std::ranges::all_of(one.samples, [](double v) { return std::isfinite(v); }));
        for (auto const& other : one.beside)
            CHECK(std::ranges::min(other.samples) > 0);
    }
}

TEST_CASE("weaving has targets where it can be held to them")
{
    auto const all = contests(weave_bench{});
    REQUIRE(all.size() >= 2);
    CHECK(all[0].rivals.at(0).times == 1.02);
    CHECK(all[1].target == 100);
    for (auto const& one : all) {
        if (!one.name.starts_with("hidden")) continue;
        CHECK(one.more_is_better);
        CHECK(one.target.has_value() == (one.name.find("0.") == std::string::npos));
    }
}

TEST_CASE("only the rows of weaving that are wanted are measured")
{
    weave_bench what;
    what.only = {"a turn"};
    what.rounds = 1;
    what.scale = 0.01;
    std::vector<std::string> heard, shown;
    auto const rows = measure(
        what, [&](std::string const& doing) { heard.push_back(doing); },
        [&](row const& one) { shown.push_back(one.name); });
    CHECK(rows.size() == 1);
    CHECK(heard == std::vector<std::string>{"a turn"});
    CHECK(shown == heard);
    CHECK(width_of(what) == width_of("a turn", {}));
}

TEST_CASE("a rank's memory is measured for the degrees that a model takes, or that are asked for")
{
    tiny_model_options shape;
    shape.heads = 4;
    shape.kv_heads = 4;
    temporary_file const model(tiny_model_bytes(shape));
    weave_bench what;
    what.model = model.path();
    what.only = {"resident"};
    CHECK(names_of(contests(what)) == std::vector<std::string>{"resident, a rank of 2", "resident, a rank of 4"});
    what.tensor = {2};
    what.rounds = 1;
    auto const rows = measure(what, {}, {});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].beside.at(0).name == "one device");
    CHECK(heading_of(what).facts.back().name == "model");
    what.model = "/no/such/model.gguf";
    what.tensor.clear();
    CHECK_THROWS_AS(contests(what), plait::error);
}

TEST_CASE("labour repeats as often as it is told, and counts itself")
{
    auto const values = std::make_unique<labour::values>();
    std::int64_t done = 0;
    run_labour({values.get(), 2, &done}, {});
    CHECK(done == 1);
    CHECK((*values)[7] == 1013904223u * 1664525u + 1013904223u);
    run_labour({values.get(), 2, &done}, {1, 2, {}}); // another worker's share is nothing
    CHECK(done == 1);
    CHECK(repeats_for({}) == 1);
}

TEST_CASE("threads at a barrier sum as ranks do")
{
    CHECK(with_threads::all_reduce(3, 100, 8).value > 0);
}
