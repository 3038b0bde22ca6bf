// The engine on simulated devices: the same program, the same tokens, in time that a model of cost gives.

#include <plait/actors/simulation/simulation.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

simulated_devices slow_devices()
{
    simulated_devices out;
    out.each.cost = sim::roofline{1e9, 1e10, 2us};
    out.link = {5us, 1e9};
    return out;
}

engine_options on_simulated(std::filesystem::path const& model, std::int32_t ranks, simulated_devices how)
{
    auto out = tiny_engine(model);
    out.spread = {ranks, 1, 2}; // sums of two parts: the same bits on one device and on two
    out.simulated = std::move(how);
    return out;
}

struct run_result {
    std::vector<collected> answers;
    duration takes{};
    std::uint64_t trace = 0;
    std::string device;
};

/// A host that is there whenever something ends.
simulation_options punctual()
{
    simulation_options how;
    how.slowness = 0;
    return how;
}

run_result run_all(engine_options const& options, std::vector<request> const& requests,
                   simulation_options const& how = punctual())
{
    frame_check frames;
    simulation all(how);
    run_result out;
    auto body = [&]() -> task<> {
        auto running = co_await open(all.home(), options);
        out.device = running.info().device;
        auto const begin = all.now();
        out.answers = co_await collect_together(running, requests);
        out.takes = all.now() - begin;
        co_await running.close();
    };
    all.run(body());
    out.trace = all.trace();
    return out;
}

} // namespace

TEST_CASE("an engine on simulated devices gives the tokens of the host, and takes virtual time")
{
    tiny_file model;
    auto const requests = some_requests(12);
    auto host = tiny_engine(model.path());
    host.spread = {1, 1, 2};
    auto const expected = run_all(host, requests);
    CHECK(expected.takes == duration{});
    for (std::int32_t ranks : {1, 2}) {
        auto const found = run_all(on_simulated(model.path(), ranks, slow_devices()), requests);
        CHECK(found.answers == expected.answers);
        CHECK(found.takes > 12 * 2us);
        CHECK(found.device.ends_with("simulated device"));
    }
}

TEST_CASE("the same requests on simulated devices take the same time, step by step")
{
    tiny_file model;
    auto const requests = some_requests(8);
    auto const options = on_simulated(model.path(), 2, slow_devices());
    auto const first = run_all(options, requests), again = run_all(options, requests);
    CHECK(first.answers == again.answers);
    CHECK(first.takes == again.takes);
    CHECK(first.trace == again.trace);
}

TEST_CASE("a host that is late, in any order, changes when tokens come and not what they are")
{
    tiny_file model;
    auto const requests = some_requests(6);
    auto const options = on_simulated(model.path(), 2, slow_devices());
    auto const expected = run_all(options, requests);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        simulation_options how;
        how.seed = seed;
        how.late_timers = 8;
        auto const found = run_all(options, requests, how);
        CHECK(found.answers == expected.answers);
        CHECK(found.takes > expected.takes);
    }
}

TEST_CASE("time alone needs no computing: an engine that computes nothing takes as long for as many tokens")
{
    tiny_file model;
    std::vector<request> const requests{ask_for("a question", 20), ask_for("another, which is longer", 20)};
    std::vector<duration> takes;
    for (bool compute : {true, false}) {
        auto how = slow_devices();
        how.each.compute = compute;
        auto const found = run_all(on_simulated(model.path(), 2, std::move(how)), requests);
        for (auto const& answer : found.answers)
            CHECK(answer.of_choice(0).size() == 20);
        takes.push_back(found.takes);
    }
    CHECK(takes[0] == takes[1]);
}

TEST_CASE("a device twice as fast takes half the time")
{
    tiny_file model;
    auto const requests = some_requests(8);
    std::vector<duration> takes;
    for (int speed : {1, 2}) {
        simulated_devices how;
        how.each.cost = [speed](operation_info const& what) { return duration(what.flops * 2 / speed); };
        takes.push_back(run_all(on_simulated(model.path(), 1, std::move(how)), requests).takes);
    }
    CHECK(takes[0] == 2 * takes[1]);
}
