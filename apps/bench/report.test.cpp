#include <plait/apps/bench/report.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace plait::bench;

namespace {

row some(std::string name, std::vector<double> samples, std::optional<double> target = {}, bool more = true)
{
    row out;
    out.name = std::move(name);
    out.unit = "tok/s";
    out.threads = 2;
    out.samples = std::move(samples);
    out.target = target;
    out.more_is_better = more;
    return out;
}

} // namespace

TEST_CASE("the spread of samples is their least, their middle and their greatest")
{
    auto odd = spread_of({5, 1, 3});
    CHECK(odd.least == 1);
    CHECK(odd.middle == 3);
    CHECK(odd.greatest == 5);
    auto even = spread_of({4, 1, 2, 8});
    CHECK(even.middle == 3);
    auto one = spread_of({7});
    CHECK(one.least == 7);
    CHECK(one.middle == 7);
    CHECK(one.greatest == 7);
}

TEST_CASE("a target is met by the middle sample, in the direction that is better")
{
    CHECK(met(some("a", {1, 2, 9}, 2)));
    CHECK(!met(some("a", {1, 2, 9}, 3)));
    CHECK(met(some("a", {1, 2, 9}, 2, false)));
    CHECK(!met(some("a", {1, 2, 9}, 1.5, false)));
    CHECK(met(some("a", {1})));
}

TEST_CASE("a target may be a multiple of what another engine has")
{
    auto r = some("tg128", {31});
    CHECK(!target_of(r).has_value());
    r.beside = {{"first", {20, 22, 18}, 1.5}, {"second", {1}}};
    CHECK(target_of(r) == doctest::Approx(30));
    CHECK(met(r));
    r.samples = {29};
    CHECK(!met(r));
    auto table = to_table({}, {r});
    CHECK(table.ends_with(
        "tg128                2       29.0 tok/s        29.0       29.0   >= 30.0 missed\n"
        "  first                      20.0 tok/s        18.0       22.0   plait has 1.45 times this\n"
        "  second                     1.00 tok/s        1.00       1.00   plait has 29.0 times this\n"));
    auto out = nlohmann::json::parse(to_json({}, {r}));
    auto const& beside = out["rows"][0]["beside"];
    REQUIRE(beside.size() == 2);
    CHECK(beside[0]["name"] == "first");
    CHECK(beside[0]["median"] == 20);
    CHECK(beside[0]["ratio"] == doctest::Approx(1.45));
}

TEST_CASE("who took turns is compared round by round")
{
    // The machine became three times as slow: of the medians, 30 and 20, the ratio would be 1.5.
    auto r = some("await", {10, 30, 33}, {}, false);
    r.unit = "ns";
    r.beside = {{"first", {5, 20, 11}, 2}, {"second", {1, 1, 11}, {}}};
    CHECK(ratios_of(r, r.beside[0]) == std::vector<double>{2, 1.5, 3});
    CHECK(met(r));
    CHECK(target_of(r) == 30);
    r.beside[0].times = 1.9;
    CHECK(!met(r));
    CHECK(target_of(r) == doctest::Approx(28.5));
    auto const lines = table_lines(r, 14);
    CHECK(lines.find("<= 28.5 missed") != lines.npos);
    CHECK(lines.find("plait takes 2.00 times this (<= 1.90 missed)") != lines.npos);
    auto const out = nlohmann::json::parse(to_json({}, {r}));
    CHECK(out["rows"][0]["beside"][0]["ratios"] == std::vector<double>{2, 1.5, 3});
    CHECK(out["rows"][0]["beside"][0]["ratio"] == 2);
}

TEST_CASE("only times are faster or slower than others")
{
    auto r = some("await, allocations", {1}, {}, false);
    r.unit = "";
    r.beside = {{"much", {4}, {}}, {"none", {0}, {}}};
    CHECK(table_lines(r, 14).find("plait has 0.25 times this\n") != std::string::npos);
    CHECK(table_lines(r, 14).find("inf") == std::string::npos);
    r.unit = "ms CPU";
    CHECK(table_lines(r, 14).find("plait is 4.00 times as fast\n") != std::string::npos);
}

TEST_CASE("of a target of its own and those beside others the row must reach every one")
{
    auto r = some("await", {10}, 12, false);
    r.beside = {{"first", {8}, 1.5}, {"second", {20}, 0.6}};
    CHECK(target_of(r) == doctest::Approx(12));
    CHECK(met(r));
    r.beside[1].times = 0.4;
    CHECK(target_of(r) == doctest::Approx(8));
    CHECK(!met(r));
    r.beside[1].times = 0.6;
    r.target = 9;
    CHECK(!met(r));
}

TEST_CASE("names that are longer than the column make it wider, those of who is beside as well")
{
    CHECK(width_of("short", {}) == 14);
    CHECK(width_of("the name of a row", {{"short", {}, {}}}) == 17);
    CHECK(width_of("short", {{"who is beside the row", {}, {}}}) == 23);
    auto r = some("short", {1});
    r.beside = {{"who is beside the row", {1}, {}}};
    auto const table = to_table({}, {r});
    auto const end_of_names = [&table](std::string const& name) {
        return table.find(name) - table.rfind('\n', table.find(name));
    };
    CHECK(end_of_names("threads") == end_of_names("      2"));
}

TEST_CASE("the table is its head and its rows, whoever puts them together")
{
    heading const what{{{"machine", "a machine"}}, {}};
    auto const one = some("one", {1});
    auto const two = some("two", {2});
    CHECK(to_table(what, {one, two}) == table_head(what, 14) + table_lines(one, 14) + table_lines(two, 14));
}

TEST_CASE("the table has a line for each row")
{
    heading what{{{"model", "m.gguf"}, {"device", "a processor"}}, {{"file_bytes", 1000}}};
    auto table = to_table(what, {some("pp512", {100, 300, 200}), some("idle", {6}, 5, false)});
    CHECK(table == "m.gguf\n"
                   "a processor\n"
                   "               threads     median               min        max   target\n"
                   "pp512                2      200.0 tok/s       100.0      300.0   -\n"
                   "idle                 2       6.00 tok/s        6.00       6.00   <= 5.00 missed\n");
}

TEST_CASE("the JSON says the same to programs")
{
    heading what{{{"model", "m.gguf"}, {"device", "a processor"}}, {{"file_bytes", 1000}}};
    auto out = nlohmann::json::parse(to_json(what, {some("pp512", {100, 300, 200}), some("idle", {4}, 5, false)}));
    CHECK(out["model"] == "m.gguf");
    CHECK(out["device"] == "a processor");
    CHECK(out["file_bytes"] == 1000);
    REQUIRE(out["rows"].size() == 2);
    auto const& first = out["rows"][0];
    CHECK(first["name"] == "pp512");
    CHECK(first["unit"] == "tok/s");
    CHECK(first["threads"] == 2);
    CHECK(first["min"] == 100);
    CHECK(first["median"] == 200);
    CHECK(first["max"] == 300);
    CHECK(first["samples"] == std::vector<double>{100, 300, 200});
    CHECK(!first.contains("target"));
    CHECK(out["rows"][1]["target"] == 5);
    CHECK(out["rows"][1]["result"] == "met");
}
