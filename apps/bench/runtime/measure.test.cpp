#include <plait/actors/error.hpp>
#include <plait/apps/bench/runtime/allocations.hpp>
#include <plait/apps/bench/runtime/apart.hpp>
#include <plait/apps/bench/runtime/compile.hpp>
#include <plait/apps/bench/runtime/contest.hpp>
#include <plait/apps/bench/runtime/measure.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace plait::bench;

TEST_CASE("every workload of every contestant gives what it should, however small it is")
{
    for (auto const& one : contests()) {
        CAPTURE(one.name);
        auto const rows = hold(one, 2, 0.002);
        REQUIRE(!rows.empty());
        auto const rounds = static_cast<std::size_t>(std::min(2, one.most_rounds));
        CHECK(rows.front().samples.size() == rounds);
        for (auto const& other : rows.front().beside) {
            CAPTURE(other.name);
            CHECK(other.samples.size() == rounds);
            CHECK(std::ranges::min(other.samples) > 0);
        }
    }
}

TEST_CASE("the contestants of a row take turns, the first of which counts allocations")
{
    if (!allocations_are_counted) return;
    std::string order;
    auto turn = [&order](char who, double value) {
        return [&order, who, value](std::int64_t n) {
            order += who;
            auto const before = allocations();
            std::vector<std::unique_ptr<int>> made;
            for (int i = 0; i < 3; ++i)
                made.push_back(std::make_unique<int>(i));
            return sample{value + static_cast<double>(n), static_cast<double>(allocations() - before > 0)};
        };
    };
    contest what;
    what.name = "work";
    what.own = {"plait", turn('p', 0), 100};
    what.rivals = {{"other", turn('o', 1), 1000, 2}};
    what.most_allocations = 0;
    auto rows = hold(what, 3, 0.1);
    CHECK(order == "popopopo");
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].name == "work");
    CHECK(rows[0].samples == std::vector<double>{10, 10, 10});
    CHECK(rows[0].beside[0].samples == std::vector<double>{101, 101, 101});
    CHECK(target_of(rows[0]) == 202);
    CHECK(met(rows[0]));
    CHECK(rows[1].name == "work, allocations");
    CHECK(rows[1].samples == std::vector<double>{1});
    CHECK(rows[1].beside[0].samples == std::vector<double>{1});
    CHECK(!met(rows[1]));
}

TEST_CASE("a workload that gave something else than it should is an error")
{
    CHECK_NOTHROW(check(3, 3, "sum"));
    CHECK_THROWS_AS(check(2, 3, "sum"), std::logic_error);
    contest what;
    what.own = {"plait",
                [](std::int64_t) -> sample {
                    check(1, 2, "work");
                    return {};
                },
                10};
    CHECK_THROWS_AS(hold(what, 1, 1), std::logic_error);
}

TEST_CASE("allocations are counted while somebody wants it, and at no other time")
{
    if (!allocations_are_counted) return;
    // Called as functions: a new expression that nobody looks at may be left out.
    auto const before = allocations();
    ::operator delete(::operator new(8));
    auto const uncounted = allocations();
    auto const bytes = allocated_bytes();
    std::int64_t counted = 0;
    std::int64_t alive = 0;
    {
        count_allocations counting;
        auto* one = ::operator new(8);
        auto* aligned = ::operator new(10'000, std::align_val_t(256));
        counted = allocations();
        alive = allocated_bytes();
        ::operator delete(one);
        ::operator delete(aligned, std::align_val_t(256));
    }
    CHECK(uncounted == before);
    CHECK(counted == before + 2);
    CHECK(alive >= bytes + 10'008);
    CHECK(alive < bytes + 11'000);
    CHECK(allocations() == counted);
    CHECK(allocated_bytes() == bytes);
}

TEST_CASE("only the rows that are wanted are measured")
{
    runtime_bench what;
    what.only = {"await"};
    what.rounds = 1;
    what.scale = 0.001;
    std::vector<std::string> heard;
    auto hear = [&heard](std::string const& doing) { heard.push_back(doing); };
    std::vector<std::string> shown;
    auto show = [&](row const& one) {
        CHECK(heard.size() == 1);
        shown.push_back(one.name);
    };
    auto rows = measure(what, hear, show);
    CHECK(heard == std::vector<std::string>{"await a child"});
    CHECK(shown == std::vector<std::string>{"await a child", "await a child, allocations"});
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].name == shown[1]);
    CHECK(width_of(what) == width_of(shown[1], {}));
    what.only = {"no such row"};
    CHECK(measure(what, {}, {}).empty());
}

TEST_CASE("the heading says where, beside whom and how it was measured")
{
    runtime_bench what;
    what.rounds = 3;
    auto const out = heading_of(what);
    std::vector<std::string> names;
    for (auto const& one : out.facts) {
        names.push_back(one.name);
        CHECK(!one.text.empty());
    }
    CHECK(names == std::vector<std::string>{"machine", "compiler", "peers", "threads", "rounds"});
    CHECK(out.facts[0].text.find("processor") != std::string::npos);
    CHECK(out.facts[2].text.find("Asio 1.") != std::string::npos);
    CHECK(out.facts[2].text.find("CAF") != std::string::npos);
    CHECK(out.facts[3].text.find("100 ms") != std::string::npos);
    CHECK(out.facts[4].text.starts_with("3 rounds"));
}

TEST_CASE("an exception that is made counts as an allocation")
{
    if (!allocations_are_counted) return;
    std::int64_t before = 0, after = 0;
    {
        count_allocations counting;
        before = allocations();
        try {
            throw 1;
        } catch (int) {
            after = allocations();
        }
    }
    CHECK(after == before + 1);
}

TEST_CASE("two sides on one thread are found out")
{
    apart where;
    CHECK_THROWS_AS(where.check(), std::logic_error);
    where.here(0);
    CHECK_THROWS_AS(where.check(), std::logic_error);
    where.here(1);
    CHECK_THROWS_AS(where.check(), std::logic_error);
    std::thread other([&] {
        on_processor second(processor(1));
        where.here(1);
    });
    other.join();
    on_processor first(processor(0));
    where.here(0);
    CHECK_NOTHROW(where.check());
    if (!processor(1)) return;
    std::thread beside([&] {
        on_processor same(processor(0));
        where.here(1);
    });
    beside.join();
    CHECK_THROWS_AS(where.check(), std::logic_error);
}

TEST_CASE("what a header takes to compile is measured, and a wrong one is an error")
{
    if (!has_compiler()) return;
    CHECK(compile("#include <cstddef>\n", "/usr/include").value > 0);
    CHECK_THROWS_AS(compile("#include <no/such/header>\n", "/usr/include"), plait::error);
}

TEST_CASE("a folder without the header, like none, is no row")
{
    auto const has_row = [](std::filesystem::path const& headers) {
        return std::ranges::any_of(contests(headers), [](contest const& one) { return one.unit == "ms"; });
    };
    CHECK(!has_row({}));
    CHECK(!has_row("/usr/lib"));
    CHECK(has_row(own_headers()) == has_compiler());
}
