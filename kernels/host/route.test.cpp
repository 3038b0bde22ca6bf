#include <plait/kernels/host/attention_ops.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

struct router {
    std::int32_t experts;
    std::int32_t used;
    expert_scoring scoring;
    bool bias = false;
    std::int32_t groups = 1;
    std::int32_t groups_used = 1;
    bool renormalise = false;
    float scale = 1;
};

router const routers[] = {
    {8, 2, expert_scoring::softmax_chosen},
    {128, 8, expert_scoring::softmax, false, 1, 1, true},
    {60, 4, expert_scoring::softmax},
    {32, 4, expert_scoring::softmax_chosen, false, 1, 1, false, 0.5f},
    {128, 8, expert_scoring::sigmoid, true, 1, 1, true, 1.8f},
    {256, 8, expert_scoring::sigmoid, true, 8, 4, true, 2.5f},
    {24, 6, expert_scoring::sigmoid, false, 6, 3},
    {5, 5, expert_scoring::softmax},
    {7, 3, expert_scoring::sigmoid, true, 7, 4, true},
    {40, 20, expert_scoring::softmax_chosen},
    {1, 1, expert_scoring::softmax_chosen},
};

constexpr std::int64_t rows = 33;

/// The memory of a choice of `rows` rows.
struct chosen {
    buffer<std::int32_t> ids;
    buffer<float> weights;
    buffer<std::int32_t> first;
    buffer<std::int32_t> entries;

    expert_choice view(std::int64_t rows, std::int32_t used, std::int32_t first_expert, std::int32_t experts)
    {
        auto const slots = static_cast<std::size_t>(rows * used);
        ids.resize(slots, -1);
        weights.resize(slots, -1.0f);
        first.assign(static_cast<std::size_t>(experts) + 1, -1);
        entries.assign(slots, -1);
        return {rows, used, first_expert, experts, ids.data(), weights.data(), first.data(), entries.data()};
    }
};

struct problem {
    router r;
    buffer<float> logits = random_floats(static_cast<std::size_t>(rows * r.experts), 1, 2);
    buffer<float> bias = random_floats(static_cast<std::size_t>(r.experts), 2, 0.2f);

    chosen run(isa set, unsigned workers, std::int64_t first = 0, std::int64_t count = rows) const
    {
        chosen out;
        route_args args;
        args.logits = logits.data() + first * r.experts;
        args.experts = r.experts;
        args.scoring = r.scoring;
        args.selection_bias = r.bias ? bias.data() : nullptr;
        args.groups = r.groups;
        args.groups_used = r.groups_used;
        args.renormalise = r.renormalise;
        args.scale = r.scale;
        args.choice = out.view(count, r.used, 0, r.experts);
        run_all(attention_ops(set).route, args, workers);
        return out;
    }
};

/// The indices of the `count` greatest values, ascending; the lower of equals.
std::vector<std::size_t> greatest(std::vector<double> const& values, std::int32_t count)
{
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
    order.resize(static_cast<std::size_t>(count));
    std::sort(order.begin(), order.end());
    return order;
}

std::vector<double> softmax(std::vector<double> x)
{
    double sum = 0;
    for (auto& value : x)
        sum += value = std::exp(value);
    for (auto& value : x)
        value /= sum;
    return x;
}

} // namespace

TEST_CASE("the experts of a token and their weights are those of the formulas in F64")
{
    for (auto const& r : routers) {
        CAPTURE(r.experts);
        problem p{r};
        auto const out = p.run(isa::scalar, 1);
        for (std::size_t row = 0; row < rows; ++row) {
            auto const* logits = p.logits.data() + row * static_cast<std::size_t>(r.experts);
            std::vector<double> scores(logits, logits + r.experts);
            if (r.scoring == expert_scoring::softmax) scores = softmax(scores);
            if (r.scoring == expert_scoring::sigmoid)
                for (auto& s : scores)
                    s = 1 / (1 + std::exp(-s));
            auto ranked = scores;
            for (std::size_t e = 0; r.bias && e < ranked.size(); ++e)
                ranked[e] += p.bias[e];
            std::vector<double> sums;
            auto const size = r.experts / r.groups;
            for (auto g = ranked.begin(); g != ranked.end(); g += size) {
                std::vector<double> group(g, g + size);
                std::sort(group.rbegin(), group.rend());
                sums.push_back(size == 1 ? group[0] : group[0] + group[1]);
            }
            auto const groups = greatest(sums, r.groups_used);
            for (std::size_t e = 0; e < ranked.size(); ++e)
                if (!std::binary_search(groups.begin(), groups.end(), e / static_cast<std::size_t>(size)))
                    ranked[e] = -1e30;
            auto const expected = greatest(ranked, r.used);
            std::vector<double> weights;
            for (auto e : expected)
                weights.push_back(scores[e]);
            if (r.scoring == expert_scoring::softmax_chosen) weights = softmax(weights);
            if (r.renormalise) {
                auto const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
                for (auto& w : weights)
                    w /= sum;
            }
            for (std::size_t s = 0; s < expected.size(); ++s) {
                auto const at = row * expected.size() + s;
                REQUIRE(out.ids[at] == static_cast<std::int32_t>(expected[s]));
                REQUIRE(out.weights[at] == doctest::Approx(weights[s] * r.scale).epsilon(2e-6));
            }
        }
    }
}

TEST_CASE("a choice has the same bits in every instruction set, for any number of workers and beside any other rows")
{
    for (auto const& r : routers) {
        problem p{r};
        auto const expected = p.run(isa::scalar, 1);
        for (auto set : available_isas()) {
            for (unsigned workers : {1u, 2u, 50u}) {
                auto const out = p.run(set, workers);
                REQUIRE(same_bits(out.ids, expected.ids));
                REQUIRE(same_bits(out.weights, expected.weights));
            }
            auto const part = p.run(set, 1, 11, 5);
            auto const from = static_cast<std::ptrdiff_t>(11 * r.used);
            CHECK(std::equal(part.ids.begin(), part.ids.end(), expected.ids.begin() + from));
            CHECK(std::equal(part.weights.begin(), part.weights.end(), expected.weights.begin() + from));
        }
    }
}

TEST_CASE("of equal experts and of equal groups the lower ones are chosen")
{
    problem p{{12, 4, expert_scoring::softmax_chosen, false, 4, 2}};
    std::fill(p.logits.begin(), p.logits.end(), 0.25f);
    p.logits[5] = 1.0f; // the second group of the first row is the best
    for (auto set : available_isas()) {
        auto const out = p.run(set, 1);
        std::int32_t const first[] = {0, 1, 2, 5}, second[] = {0, 1, 2, 3};
        CHECK(std::equal(first, first + 4, out.ids.begin()));
        CHECK(std::equal(second, second + 4, out.ids.begin() + 4));
    }
}

TEST_CASE("outputs that are NaN or infinite choose as many experts as others do, each once")
{
    for (auto const& r : routers) {
        problem p{r};
        auto const nan = std::numeric_limits<float>::quiet_NaN();
        auto const infinity = std::numeric_limits<float>::infinity();
        for (std::size_t i = 0; i < p.logits.size(); ++i)
            p.logits[i] = i % 3 == 0 ? nan : i % 3 == 1 ? -infinity : infinity;
        for (auto set : available_isas()) {
            auto const out = p.run(set, 1);
            for (std::size_t row = 0; row < rows; ++row) {
                auto const* ids = out.ids.data() + row * static_cast<std::size_t>(r.used);
                std::set<std::int32_t> const different(ids, ids + r.used);
                CHECK(different.size() == static_cast<std::size_t>(r.used));
                CHECK(*different.begin() >= 0);
                CHECK(*different.rbegin() < r.experts);
            }
        }
    }
}

TEST_CASE("every slot of an expert that is here is in its list, rows ascending, and no other")
{
    for (auto const& r : routers)
        for (auto [first, count] : {std::pair{0, r.experts}, std::pair{r.experts / 3, (r.experts + 1) / 2}})
            for (unsigned workers : {1u, 3u, 200u}) {
                problem p{r};
                auto out = p.run(isa::scalar, 1);
                auto const choice = out.view(rows, r.used, first, count);
                run_all(list_experts, choice, workers);
                std::vector<std::int32_t> entries, begins;
                for (auto expert = first; expert < first + count; ++expert) {
                    begins.push_back(static_cast<std::int32_t>(entries.size()));
                    for (std::size_t i = 0; i < out.ids.size(); ++i)
                        if (out.ids[i] == expert) entries.push_back(static_cast<std::int32_t>(i));
                }
                begins.push_back(static_cast<std::int32_t>(entries.size()));
                CHECK(std::equal(begins.begin(), begins.end(), out.first.begin(), out.first.end()));
                entries.resize(out.entries.size(), -1);
                CHECK(std::equal(entries.begin(), entries.end(), out.entries.begin()));
            }
}
