// Passes of a model that are woven, whatever their order of lanes and however long each stream takes: the same logits,
// or an error that says why not.

#include <plait/actors/simulation/simulation.hpp>
#include <plait/streams/sim/sim_device.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/seeds.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

tiny_model_options small_model()
{
    return {.width = 32, .heads = 2, .kv_heads = 2, .ffn = 64, .vocabulary = 260};
}

model_probe::options small_probe(std::filesystem::path const& model, std::int32_t ranks)
{
    model_probe::options how(model);
    how.sequences = 3;
    how.positions = 48;
    how.spread = {ranks, 1, 2}; // sums of two parts: the same bits on one device and on two
    how.lanes = 4;
    return how;
}

using random_source = std::mt19937_64;

std::int32_t below(random_source& random, std::int32_t n)
{
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
}

constexpr std::array<std::int32_t, 3> lengths{21, 38, 9}; // of the sequences

std::vector<std::int32_t> tokens_of(int sequence, std::int32_t from, std::int32_t to)
{
    std::vector<std::int32_t> out;
    for (auto i = from; i < to; ++i)
        out.push_back(3 + (i * i + 7 * i + 50 * sequence) % 250);
    return out;
}

using rows = std::vector<float>;
using passes = std::vector<std::vector<probe_chunk>>;

/// The logits of a sequence's positions, one after the other: of all sequences in one pass on one device.
std::vector<rows> logits_alone(std::filesystem::path const& model)
{
    std::vector<rows> out;
    simulation all;
    auto body = [&]() -> task<> {
        auto probes = make_probes(all.home(), 1, 1);
        co_await load_probes(probes, small_probe(model, 1));
        passes whole(1);
        for (int s = 0; s < 3; ++s)
            whole[0].emplace_back(s, 0, tokens_of(s, 0, lengths[static_cast<std::size_t>(s)]));
        std::vector<stream_role> const one_lane(1, stream_role::compute);
        auto const found = co_await run_probes(probes, whole, one_lane);
        auto at = found[0].begin();
        for (auto length : lengths) {
            auto const end = at + length * (std::ssize(found[0]) / (lengths[0] + lengths[1] + lengths[2]));
            out.emplace_back(at, end);
            at = end;
        }
        co_await stop_probes(probes);
    };
    all.run(body());
    return out;
}

/// A plan: passes in the order of their lanes, and the streams of these. Passes past the last lane go into that.
struct woven_plan {
    woven_plan() = default; // not an aggregate: it is passed through awaits

    passes all;
    std::vector<stream_role> lanes;

    /// Whether no pass has an earlier chunk of a sequence than one before it.
    bool in_order() const
    {
        std::array<std::int32_t, lengths.size()> come{};
        for (auto const& pass : all)
            for (auto const& chunk : pass) {
                auto& so_far = come[static_cast<std::size_t>(chunk.sequence)];
                if (chunk.first_position < so_far) return false;
                so_far = chunk.first_position;
            }
        return true;
    }
};

/// Positions [from[s], to[s]) of each sequence s, in chunks, over up to four passes in any order of lanes.
woven_plan draw_plan(random_source& random, std::array<std::int32_t, 3> const& from,
                     std::array<std::int32_t, 3> const& to)
{
    woven_plan out;
    out.all.resize(1 + random() % 4);
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        auto left = to[s] - from[s];
        for (std::size_t i = 0; i < out.all.size() && left > 0; ++i) {
            auto const last = i + 1 == out.all.size();
            auto const count = last ? left : below(random, left + 1);
            if (count == 0) continue;
            auto const begin = to[s] - left;
            out.all[i].emplace_back(static_cast<int>(s), begin, tokens_of(static_cast<int>(s), begin, begin + count));
            left -= count;
        }
    }
    std::erase_if(out.all, [](auto const& pass) { return pass.empty(); });
    if (random() % 4 == 0) std::ranges::shuffle(out.all, random);
    auto const lanes = 1 + random() % 4;
    for (std::size_t i = 0; i < std::min<std::size_t>(lanes, out.all.size()); ++i)
        out.lanes.push_back(random() % 3 == 0 ? stream_role::urgent : stream_role::compute);
    return out;
}

void compare(woven_plan const& plan, std::vector<rows> const& found, std::vector<rows> const& expected)
{
    for (std::size_t i = 0; i < plan.all.size(); ++i) {
        auto at = found.at(i).begin();
        for (auto const& chunk : plan.all[i]) {
            auto const s = static_cast<std::size_t>(chunk.sequence);
            auto const width = std::ssize(expected[s]) / lengths[s];
            auto const count = std::ssize(chunk.tokens) * width;
            if (found[i].end() - at < count) throw std::runtime_error("fewer logits than tokens");
            if (!std::equal(at, at + count, expected[s].begin() + chunk.first_position * width))
                throw std::runtime_error("pass " + std::to_string(i) + ", sequence " + std::to_string(chunk.sequence) +
                                         " from " + std::to_string(chunk.first_position) + ": other logits");
            at += count;
        }
        if (at != found[i].end()) throw std::runtime_error("more logits than tokens");
    }
}

/// A device on which each operation takes as long as it likes, or the host's own.
std::unique_ptr<device> draw_device(runtime& rt, random_source& random)
{
    constexpr std::size_t memory = std::size_t(64) << 20;
    if (random() % 4 == 0)
        return std::make_unique<host::host_device>(std::make_shared<host::compute_pool>(rt, 1), memory);
    sim::sim_options how;
    how.cost = [takes = std::make_shared<random_source>(random())](operation_info const&) {
        return (*takes)() % 8 == 0 ? duration((*takes)() % 100'000) : duration((*takes)() % 1'000);
    };
    return std::make_unique<sim::sim_device>(rt, memory, how);
}

/// A layer has two parts, each of which ends with a sum; one operation takes all the time of each.
constexpr duration part_time = 100us;

duration by_parts(operation_info const& what)
{
    return what.name == "attention" || what.name == "gated" ? part_time : duration{};
}

struct tally {
    int woven = 0;    ///< plans of several lanes
    int reported = 0; ///< in an order that reads pages before they are written
};

/// Two plans, one after the other, over the same activations.
task<> weave_at_random(runtime& rt, std::filesystem::path const& model, std::vector<rows> const& expected, tally& count)
{
    random_source random(rt.random_seed());
    auto const ranks = 1 + below(random, 2);
    std::vector<std::unique_ptr<device>> devices;
    for (std::int32_t i = 0; i < ranks; ++i)
        devices.push_back(draw_device(rt, random));
    host::host_group_options group;
    group.link.latency = duration(random() % 3 * (random() % 50'000));
    auto probes = make_probes(rt, std::move(devices), std::move(group));
    co_await load_probes(probes, small_probe(model, ranks));
    std::array<std::int32_t, 3> from{}, to{};
    for (std::size_t s = 0; s < lengths.size(); ++s)
        to[s] = 1 + below(random, lengths[s] - 1);
    for (int i = 0; i < 2; ++i) {
        auto const plan = draw_plan(random, from, to);
        auto outcome = co_await as_result(run_probes(probes, plan.all, plan.lanes));
        if (plan.lanes.size() > 1) ++count.woven;
        if (!plan.in_order()) {
            if (outcome.error() != errc::bad_plan) throw std::runtime_error("an order that reads too early");
            ++count.reported;
            break;
        }
        compare(plan, std::move(outcome).value(), expected);
        from = to;
        to = lengths;
    }
    co_await stop_probes(probes);
}

} // namespace

TEST_CASE("logits are the same in every order of lanes that writes pages before it reads them; others are reported")
{
    temporary_file const file(tiny_model_bytes(small_model()));
    auto const expected = logits_alone(file.path());
    tally count;
    auto body = [&](simulation& all) {
        frame_check frames;
        all.run(weave_at_random(all.home(), file.path(), expected, count));
    };
    check_seeds(body, 500, {}, 40);
    if (environment("PLAIT_SEED")) return;
    CHECK(count.woven >= 100);
    CHECK(count.reported >= 20);
}

TEST_CASE("two woven halves of a model's step hide every sum but those beside which there is nothing to compute")
{
    temporary_file const file(tiny_model_bytes(small_model()));
    constexpr duration link = 80us;
    constexpr std::int64_t layers = 2, halves = 2;
    auto step_in = [&](std::vector<stream_role> const& lanes) {
        frame_check frames;
        simulation_options how;
        how.slowness = 0;
        simulation all(how);
        duration takes{};
        auto body = [&]() -> task<> {
            sim::sim_options each;
            each.cost = by_parts;
            std::vector<std::unique_ptr<device>> devices;
            for (int rank = 0; rank < 2; ++rank)
                devices.push_back(std::make_unique<sim::sim_device>(all.home(), std::size_t(64) << 20, each));
            host::host_group_options group;
            group.link.latency = link;
            auto probes = make_probes(all.home(), std::move(devices), group);
            co_await load_probes(probes, small_probe(file.path(), 2));
            passes both(2);
            both[0].emplace_back(1, 0, tokens_of(1, 0, 20), false);
            both[1].emplace_back(1, 20, tokens_of(1, 20, 38), false);
            auto const begin = all.now();
            co_await run_probes(probes, both, lanes);
            takes = all.now() - begin;
            co_await stop_probes(probes);
        };
        all.run(body());
        return takes;
    };
    constexpr auto compute = halves * layers * 2 * part_time;
    // Of each half: the embedding, the parts of the layers, and the logits.
    constexpr auto in_turn = compute + halves * (1 + 2 * layers + 1) * link;
    // The first half's embedding, the last layer of the second, and the logits of both: nothing computes meanwhile.
    constexpr auto ideal = compute + 4 * link;
    CHECK(step_in({stream_role::compute}) == in_turn);
    auto const woven = step_in({stream_role::compute, stream_role::compute});
    CHECK(woven >= ideal);
    auto const hidden = static_cast<double>((in_turn - woven).count());
    CHECK(hidden >= 0.99 * static_cast<double>((in_turn - ideal).count()));
}
