#include <plait/engine/costs.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/engine/policies/weaving.hpp>

#include <plait/actors/error.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

/// Two sequences that decode and a prompt of 100 tokens.
struct scene {
    std::vector<sequence_view> sequences;
    snapshot now;

    explicit scene(cost_model const* costs, std::int64_t context = 16, std::int64_t prompt = 100)
    {
        for (sequence_id id = 1; id <= 3; ++id) {
            sequence_view s;
            s.id = id;
            s.prompt = 10;
            if (id < 3) {
                s.running = true;
                s.computed = context;
                s.held = context / 16;
                s.pending = 1;
                s.generated = 7;
            } else {
                s.prompt = s.pending = prompt;
            }
            sequences.push_back(s);
        }
        now.token_budget = 512;
        now.sequence_budget = 8;
        now.free_slots = 8;
        now.free_pages = 100;
        now.lanes = 2;
        now.costs = costs;
        now.sequences = sequences;
    }
};

bool refused(scene const& s, step_plan const& plan)
{
    try {
        check(plan, s.now);
    } catch (error const& e) {
        return e.condition() == errc::bad_plan;
    }
    return false;
}

} // namespace

TEST_CASE("a line's costs: all-reduces worth hiding split a prompt, cheap ones and dear passes do not")
{
    step_shape const step{1000, 0};
    linear_costs const dear_sums({1ms, 10us}, {100us, 8us}, 32);
    CHECK(dear_sums.fused(step) == 11ms + 8100us);
    CHECK(dear_sums.split(step) == 12ms + 8200000ns / 64);
    CHECK(dear_sums.split(step) < dear_sums.fused(step));
    linear_costs const cheap_sums({1ms, 10us}, {10us, 100ns}, 32);
    CHECK(cheap_sums.split(step) > cheap_sums.fused(step));
    linear_costs const one_device({1ms, 10us}, {}, 32);
    CHECK(one_device.split(step) == one_device.fused(step) + 1ms);
    CHECK(one_device.beside({1000, 10}) > one_device.fused({1000, 10}));
}

TEST_CASE("a plan keeps one lane without costs, without a second lane and where one lane is best")
{
    linear_costs const dear_sums({1ms, 10us}, {100us, 80us}, 32);
    linear_costs const no_sums({1ms, 10us}, {}, 32);
    scene none(nullptr), single(&dear_sums), best(&no_sums);
    single.now.lanes = 1;
    for (auto* s : {&none, &single, &best}) {
        auto plan = first_come_first_served().next(s->now);
        CHECK(plan.lanes.empty());
        CHECK(plan.entries.size() == 3);
        CHECK_FALSE(refused(*s, plan));
    }
}

TEST_CASE("the longest chunk is split in halves, in two lanes, the rest in the first")
{
    linear_costs const dear_sums({1ms, 10us}, {100us, 80us}, 32);
    scene s(&dear_sums);
    auto plan = first_come_first_served().next(s.now);
    CHECK(plan.lanes == std::vector{stream_role::compute, stream_role::compute});
    REQUIRE(plan.entries.size() == 4);
    CHECK(plan.entries[2].tokens == 50);
    CHECK(plan.entries[2].lane == 0);
    CHECK(plan.entries[3].id == 3);
    CHECK(plan.entries[3].tokens == 50);
    CHECK(plan.entries[3].lane == 1);
    CHECK_FALSE(refused(s, plan));
}

TEST_CASE("decode goes to the urgent stream beside a prompt where the costs say so")
{
    struct beside_is_best final : cost_model {
        duration fused(step_shape const& step) const override
        {
            CHECK(step.prefill == 100);
            CHECK(step.decode == 2);
            return 3ms;
        }
        duration split(step_shape const&) const override { return 2ms; }
        duration beside(step_shape const&) const override { return 1ms; }
    } const costs;
    scene s(&costs);
    auto plan = shortest_prefill_first().next(s.now);
    CHECK(plan.lanes == std::vector{stream_role::urgent, stream_role::compute});
    REQUIRE(plan.entries.size() == 3);
    for (auto const& e : plan.entries)
        CHECK(e.lane == (e.id == 3 ? 1 : 0));
    CHECK_FALSE(refused(s, plan));
}

TEST_CASE("two streams beside each other hide memory behind arithmetic, as far as a device lets them")
{
    using line = linear_costs::line;
    // 3.08 ms of arithmetic, 1.6 ms of keys and values, 1 ms of weights for each pass.
    step_shape const step{300, 8, 16'000};
    linear_costs const ideal(line{1ms, 10us}, {}, 32, {100ns, 1});
    CHECK(ideal.fused(step) == 5680us);
    CHECK(ideal.split(step) == 6680us);
    CHECK(ideal.beside(step) == 4ms); // the prompt alone
    linear_costs const half(line{1ms, 10us}, {}, 32, {100ns, 0.5});
    CHECK(half.beside(step) == 4ms + 2680us / 2);
    linear_costs const host(line{1ms, 10us}, {}, 32, {100ns, 0});
    CHECK(host.beside(step) == host.split(step));
    // A short prompt has too little arithmetic to hide what is read: the second reading of the weights costs more.
    CHECK(ideal.beside({20, 8, 16'000}) == 3600us);
    CHECK(ideal.fused({20, 8, 16'000}) == 2880us);
    // No less than all arithmetic.
    CHECK(ideal.beside({300, 290, 0}) == 5900us);
}

TEST_CASE("policies have decode beside a prompt where that is shorter, and nowhere else")
{
    using line = linear_costs::line;
    auto const lanes_of = [](linear_costs const& costs, std::int64_t context, std::int64_t prompt) {
        scene s(&costs, context, prompt);
        auto plan = first_come_first_served().next(s.now);
        CHECK_FALSE(refused(s, plan));
        return plan.lanes;
    };
    std::vector const beside{stream_role::urgent, stream_role::compute};
    std::vector const split{stream_role::compute, stream_role::compute};
    linear_costs const device(line{1ms, 10us}, {}, 32, {100ns, 0.8});
    CHECK(lanes_of(device, 8000, 400) == beside);
    CHECK(lanes_of(device, 8000, 40).empty()); // too little arithmetic
    CHECK(lanes_of(device, 16, 100).empty());  // too little to hide
    linear_costs const host(line{1ms, 10us}, {}, 32, {100ns, 0});
    CHECK(lanes_of(host, 8000, 400).empty());
    // Sums that are worth hiding are hidden by both; two streams hide more, on a device that has them.
    line const sums{100us, 80us};
    linear_costs const many(line{1ms, 100us}, sums, 32, {100ns, 0.8});
    CHECK(lanes_of(many, 8000, 400) == beside);
    linear_costs const hosts(line{1ms, 100us}, sums, 32, {100ns, 0});
    CHECK(lanes_of(hosts, 8000, 400) == split);
}

TEST_CASE("a sequence may have chunks in ascending lanes only, in lanes that there are")
{
    constexpr auto c = stream_role::compute;
    scene s(nullptr);
    CHECK_FALSE(refused(s, {{{3, 60, 0}, {3, 40, 1}}, {}, {c, c}}));
    CHECK_FALSE(refused(s, {{{1, 1, 1}}, {}, {c, stream_role::urgent}}));
    CHECK(refused(s, {{{3, 60, 1}, {3, 40, 0}}, {}, {c, c}}));
    CHECK(refused(s, {{{3, 60, 0}, {3, 40, 0}}, {}, {c, c}}));
    CHECK(refused(s, {{{3, 60, 0}, {3, 41, 1}}, {}, {c, c}}));
    CHECK(refused(s, {{{3, 60, 0}, {3, 40, 2}}, {}, {c, c}}));
    CHECK(refused(s, {{{3, 60, -1}}, {}, {c, c}}));
    CHECK(refused(s, {{{3, 60, 0}}, {}, {c, c, c}}));
    CHECK(refused(s, {{{3, 60, 0}}, {}, {c, stream_role::communication}}));
    CHECK(refused(s, {{{1, 1, 0}}, {1}, {c, c}}));
    // The pages of all chunks together count, once.
    s.now.free_pages = 7;
    CHECK_FALSE(refused(s, {{{3, 60, 0}, {3, 40, 1}}, {}, {c, c}}));
    s.now.free_pages = 6;
    CHECK(refused(s, {{{3, 60, 0}, {3, 40, 1}}, {}, {c, c}}));
}
