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
    auto r = some("tg128", {30, 31, 32});
    CHECK(!target_of(r).has_value());
    r.beside = {{"first", {20, 22, 18}, 1.5}, {"second", {1}}};
    CHECK(target_of(r) == 30);
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
