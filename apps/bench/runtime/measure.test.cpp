#include <plait/apps/bench/runtime/allocations.hpp>
#include <plait/apps/bench/runtime/contest.hpp>
#include <plait/apps/bench/runtime/measure.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
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
    auto out = measure(what, hear);
    CHECK(heard == std::vector<std::string>{"await a child"});
    REQUIRE(out.rows.size() == 2);
    CHECK(!out.what.facts.empty());
}
