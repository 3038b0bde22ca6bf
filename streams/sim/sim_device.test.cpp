#include <plait/streams/sim/sim_device.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/streams/weave.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

simulation_options punctual(std::uint64_t seed = 1)
{
    simulation_options how;
    how.seed = seed;
    how.slowness = 0; // the host is there whenever something ends
    return how;
}

/// A byte takes a nanosecond.
duration by_bytes(operation_info const& what)
{
    return duration(what.bytes);
}

sim::sim_options by_bytes_each()
{
    sim::sim_options how;
    how.cost = by_bytes;
    return how;
}

ref<test_gpu> make_sim_gpu(runtime& rt, sim::sim_options how)
{
    auto loop = rt.new_loop("plait-gpu-test");
    return rt.spawn_on<test_gpu>(loop, std::ref(*loop),
                                 std::make_unique<sim::sim_device>(rt, std::size_t(64) << 20, std::move(how)));
}

task<> on_sim_gpu(runtime& rt, test_gpu::body what, sim::sim_options how = by_bytes_each())
{
    auto g = make_sim_gpu(rt, std::move(how));
    auto outcome = co_await as_result(ask<&test_gpu::run>(g, std::move(what)));
    co_await stop(g);
    std::move(outcome).value();
}

struct note {
    std::vector<int>* to;
    int value;
};

void run_note(note const& args, share part)
{
    CHECK(part.count == 1);
    args.to->push_back(args.value);
}

ticket put(stream& on, duration takes, std::vector<int>& to, int value)
{
    return static_cast<host::host_stream&>(on).put({"note", takes.count()}, run_note, note{&to, value});
}

} // namespace

TEST_CASE("a host that is busy with each operation puts the next one later, and costs nothing where it runs ahead")
{
    simulation all(punctual());
    auto how = by_bytes_each();
    how.issue = 10us;
    std::vector<int> done;
    std::vector<duration> ends;
    auto body = [&](test_gpu& g) -> task<> {
        auto& d = g.driven();
        auto& compute = d.stream_of(stream_role::compute);
        auto& urgent = d.stream_of(stream_role::urgent);
        auto const begin = all.now();
        auto const ended = [&](ticket t) -> task<> {
            co_await t;
            ends.push_back(all.now() - begin);
        };
        put(compute, 100us, done, 1);                // there at 10, until 110
        auto second = put(compute, 5us, done, 2);    // there at 20, until 115
        auto beside = put(urgent, 1us, done, 3);     // there at 30, until 31
        urgent.wait(second);                         // there at 40
        auto after = put(urgent, 1us, done, 4);      // there at 50, until 116
        auto short_one = put(compute, 1us, done, 5); // there at 60, until 116
        for (auto t : {beside, second, after, short_one})
            co_await ended(t);
        // The host was busy until 60, and it is 116.
        co_await ended(put(compute, 1us, done, 6)); // there at 126
    };
    all.run(on_sim_gpu(all.home(), body, how));
    CHECK(done == std::vector{3, 1, 2, 4, 5, 6});
    CHECK(ends == std::vector<duration>{31us, 115us, 116us, 116us, 127us});
}

TEST_CASE("a collective begins when the last host has put it")
{
    simulation all(punctual());
    auto const run_member = [&](std::shared_ptr<communicator> member, duration issue) -> task<> {
        auto how = by_bytes_each();
        how.issue = issue;
        auto body = [member](test_gpu& g) -> task<> {
            float value = 1;
            collective_call call;
            call.in = call.out = &value;
            call.count = 1;
            co_await member->put(g.driven().stream_of(stream_role::communication), call);
            CHECK(value == 2);
        };
        co_await on_sim_gpu(all.home(), body, how);
    };
    auto members = host::make_host_group(all.home(), 2);
    std::shared_ptr<communicator> quick = std::move(members[0]), slow = std::move(members[1]);
    all.run(when_all(run_member(std::move(quick), 1us), run_member(std::move(slow), 70us)));
    CHECK(all.now() - time_point() == 70us);
}

TEST_CASE("operations of one stream take their time one after the other, those of two side by side")
{
    simulation all(punctual());
    frame_check frames;
    auto body = [&](test_gpu& g) -> task<> {
        std::vector<int> ran;
        auto& compute = g.driven().stream_of(stream_role::compute);
        auto& copies = g.driven().stream_of(stream_role::copy_in);
        auto const begin = all.now();
        auto a = put(compute, 10us, ran, 1), b = put(compute, 20us, ran, 2);
        auto c = put(copies, 15us, ran, 3), d = put(copies, 30us, ran, 4);
        co_await a;
        CHECK(all.now() - begin == 10us);
        co_await c;
        CHECK(all.now() - begin == 15us);
        co_await b;
        CHECK(all.now() - begin == 30us);
        CHECK(!d.passed());
        // The stream is free now: what is put begins now.
        co_await all.home().clock().sleep_for(5us);
        co_await put(compute, 7us, ran, 5);
        CHECK(all.now() - begin == 42us);
        co_await d;
        CHECK(all.now() - begin == 45us);
        CHECK(ran == std::vector{1, 3, 2, 5, 4});
    };
    all.run(on_sim_gpu(all.home(), body));
}

TEST_CASE("an operation begins when its stream is free and what it waits for has ended, to the nanosecond")
{
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        simulation all(punctual(seed));
        auto body = [&](test_gpu& g) -> task<> {
            std::mt19937 random(seed);
            auto const begin = all.now();
            std::vector<int> ran;
            std::vector<ticket> tickets;
            std::vector<duration> expected, found(40);
            std::array<duration, stream_roles> free{};
            for (int i = 0; i < 40; ++i) {
                auto const role = random() % stream_roles;
                auto& on = g.driven().stream_of(static_cast<stream_role>(role));
                for (; !tickets.empty() && random() % 2 == 0;) {
                    auto const other = random() % tickets.size();
                    on.wait(tickets[other]);
                    free[role] = std::max(free[role], expected[other]);
                }
                duration const takes(random() % 1000);
                free[role] += takes;
                expected.push_back(free[role]);
                tickets.push_back(put(on, takes, ran, i));
            }
            auto one = [&](std::size_t i) -> task<> {
                co_await tickets[i];
                found[i] = all.now() - begin;
            };
            auto everyone = [&](scope& s) -> task<> {
                for (std::size_t i = 0; i < tickets.size(); ++i)
                    s.start(one(i));
                co_return;
            };
            co_await with_scope(everyone);
            CHECK(found == expected);
            CHECK(std::ranges::is_sorted(
                ran, {}, [&](int i) { return expected[static_cast<std::size_t>(i)]; })); // each ran when it ended
        };
        all.run(on_sim_gpu(all.home(), body));
    }
}

TEST_CASE("without computing the time is the same, and memory stays as it is")
{
    for (bool compute : {true, false}) {
        simulation all(punctual());
        std::vector<int> ran;
        auto body = [&](test_gpu& g) -> task<> {
            co_await put(g.driven().stream_of(stream_role::compute), 3us, ran, 1);
            CHECK(all.now() == time_point(3us));
        };
        auto how = by_bytes_each();
        how.compute = compute;
        all.run(on_sim_gpu(all.home(), body, how));
        CHECK(ran.size() == (compute ? 1 : 0));
    }
}

TEST_CASE("a roofline is the slower of two limits and a fixed time")
{
    sim::roofline const r{1e9, 1e12, 5us};
    CHECK(r({"", 1000, 1000}) == 5us + 1us);
    CHECK(r({"", 1000, 2'000'000}) == 5us + 2us);
    CHECK(r({"", 1, 1001}) == 5us + 2ns); // rounded up
    CHECK(r({"", 0, 0}) == 5us);
    CHECK(sim::roofline{}({"", 1'000'000, 1'000'000}) == 0ns);
}

TEST_CASE("memory that an operation uses comes back when that has ended, and a device that goes ends its operations")
{
    simulation all(punctual());
    std::vector<int> ran;
    auto body = [&](test_gpu& g) -> task<> {
        auto& compute = g.driven().stream_of(stream_role::compute);
        buffer memory(g.dev(), std::size_t(40) << 20);
        memory.used_by(put(compute, 10us, ran, 1));
        memory = {};
        CHECK_THROWS_AS(buffer(g.dev(), std::size_t(40) << 20), error); // still in use
        co_await compute.last();
        memory = buffer(g.dev(), std::size_t(40) << 20);
        memory.used_by(put(compute, 10us, ran, 2));
        put(compute, 10us, ran, 3);
    };
    all.run(on_sim_gpu(all.home(), body));
    CHECK(ran == std::vector{1, 2, 3});
    CHECK(all.now() == time_point(10us)); // nobody waited for the last two
}

TEST_CASE("a simulated device that fails ends every wait with the reason")
{
    simulation all(punctual());
    auto body = [&](test_gpu& g) -> task<> {
        std::vector<int> ran;
        auto t = put(g.driven().stream_of(stream_role::compute), 10us, ran, 1);
        auto passes = [](ticket what) -> task<> { co_await what; };
        auto waits = [&]() -> task<> {
            auto outcome = co_await as_result(passes(t));
            CHECK(outcome.error() == errc::io);
        };
        auto both = [&](scope& s) -> task<> {
            s.start(waits());
            co_await all.home().clock().sleep_for(4us);
            g.dev().abort(std::make_exception_ptr(error(errc::io, "a test")));
        };
        co_await with_scope(both);
        CHECK(all.now() == time_point(4us));
        CHECK(ran.empty());
    };
    all.run(on_sim_gpu(all.home(), body));
}

namespace {

struct woven_step {
    duration takes{};
    std::uint64_t trace = 0;
};

/// A step of `layers` layers on each of `ranks` ranks: two halves, or the whole in `lanes` 1. Each half of a layer
/// computes for `compute` and sums over the ranks, which takes `link`.
woven_step run_step(int ranks, std::size_t lanes, int layers, duration compute, duration link)
{
    simulation all(punctual());
    woven_step out;
    auto body = [&]() -> task<> {
        auto& rt = all.home();
        host::host_group_options how;
        how.link.latency = link;
        auto group = host::make_host_group(rt, ranks, how);
        std::vector<ref<test_gpu>> gpus;
        for (int rank = 0; rank < ranks; ++rank)
            gpus.push_back(make_sim_gpu(rt, by_bytes_each()));
        auto one = [&](test_gpu& g, communicator& tensor) -> task<> {
            std::vector<int> ran;
            std::array<float, 2> values{1, 2};
            weave w(g.driven(), lanes, {&tensor, nullptr});
            auto half = [&](flow& f, float* value) -> task<> {
                for (int layer = 0; layer < layers; ++layer) {
                    host::put(f, {"layer", compute.count()}, run_note, note{&ran, layer});
                    co_await f.all_reduce(value, value, 1);
                }
            };
            co_await w.run(half(w[0], &values[0]), half(w[1], &values[1]));
            co_await w[0];
            co_await w[1];
            float expected = 1;
            for (int layer = 0; layer < layers; ++layer)
                expected *= static_cast<float>(ranks);
            CHECK(values[0] == expected);
            CHECK(values[1] == 2 * expected);
        };
        auto everyone = [&](scope& s) -> task<> {
            for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
                test_gpu::body part = [&, rank](test_gpu& g) { return one(g, *group[rank]); };
                s.start(ask<&test_gpu::run>(gpus[rank], std::move(part)));
            }
            co_return;
        };
        auto const begin = all.now();
        co_await with_scope(everyone);
        out.takes = all.now() - begin;
        for (auto const& g : gpus)
            co_await stop(g);
    };
    all.run(body());
    out.trace = all.trace();
    return out;
}

} // namespace

TEST_CASE("two woven halves hide every sum that is not longer than a half computes, but the last")
{
    for (int ranks : {2, 4})
        for (auto link : {duration(1us), duration(40us), duration(100us)}) {
            constexpr int layers = 30;
            constexpr duration compute = 100us;
            auto const woven = run_step(ranks, 2, layers, compute, link).takes;
            auto const ideal = 2 * layers * compute + link;
            auto const in_turn = run_step(ranks, 1, layers, compute, link).takes;
            CHECK(in_turn == 2 * layers * (compute + link)); // overlap is off: the sum
            auto const hidden = static_cast<double>((in_turn - woven).count());
            auto const could_be = static_cast<double>((in_turn - ideal).count());
            CHECK(hidden <= could_be);
            CHECK(hidden >= 0.99 * could_be);
        }
}

TEST_CASE("where sums take longer than what could hide them, the link is what is always busy")
{
    // Lane 1's sum begins when lane 0's is over; a half computes while the other's sum is under way.
    constexpr int layers = 30;
    CHECK(run_step(2, 2, layers, 100us, 250us).takes == 100us + 2 * layers * duration(250us));
}

TEST_CASE("a step on simulated devices runs twice in the same way")
{
    auto const first = run_step(4, 2, 10, 100us, 70us);
    auto const again = run_step(4, 2, 10, 100us, 70us);
    CHECK(first.takes == again.takes);
    CHECK(first.trace == again.trace);
}

CO_TEST_CASE("on the machine's clock a simulated device takes at least its time")
{
    auto const begin = rt.clock().now();
    auto body = [](test_gpu& g) -> task<> {
        std::vector<int> ran;
        auto& compute = g.driven().stream_of(stream_role::compute);
        auto& copies = g.driven().stream_of(stream_role::copy_out);
        put(compute, 2ms, ran, 1);
        copies.wait(compute.last());
        co_await put(copies, 1ms, ran, 2);
        CHECK(ran == std::vector{1, 2});
    };
    co_await on_sim_gpu(rt, body);
    CHECK(rt.clock().now() - begin >= 3ms);
}
