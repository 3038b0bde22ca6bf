// Stages of a pipeline in virtual time: devices wait while it fills and while it runs empty, and at no other time.

#include <plait/actors/simulation/simulation.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

constexpr duration stage_time = 1ms; // that a stage computes on a chunk, or on a token
constexpr std::int64_t chunk_tokens = 16;

/// One layer for each stage, of which one operation takes all the time.
duration by_layers(operation_info const& what)
{
    return what.name == "gated" ? stage_time : duration{};
}

engine_options staged(std::filesystem::path const& model, std::int32_t stages, duration link)
{
    auto out = tiny_engine(model);
    out.step_tokens = chunk_tokens;
    out.spread = {1, stages};
    out.simulated.emplace();
    out.simulated->each.cost = by_layers;
    out.simulated->link.latency = link;
    return out;
}

struct run_result {
    std::vector<collected> answers;
    duration takes{};
    std::int64_t steps = 0;
};

/// Takes the time from the requests to the end of their answers.
run_result run_all(engine_options const& options, std::vector<request> const& requests)
{
    frame_check frames;
    simulation_options how;
    how.slowness = 0; // the host is there whenever something ends
    simulation all(how);
    run_result out;
    auto body = [&]() -> task<> {
        auto running = co_await open(all.home(), options);
        auto const begin = all.now();
        out.answers = co_await collect_together(running, requests);
        out.takes = all.now() - begin;
        auto const stats = co_await running.stats();
        out.steps = stats.steps;
        co_await running.close();
    };
    all.run(body());
    return out;
}

request prompt_of(std::int64_t tokens, std::int64_t answer)
{
    auto out = ask_for("", answer);
    out.text.clear();
    for (std::int64_t i = 0; i < tokens; ++i)
        out.tokens.push_back(static_cast<std::int32_t>(3 + i % 250));
    return out;
}

tiny_model_options a_layer_each(std::uint32_t stages)
{
    tiny_model_options shape;
    shape.layers = stages;
    shape.width = 32;
    shape.heads = 2;
    shape.ffn = 64;
    return shape;
}

double ratio(duration a, duration b)
{
    return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

} // namespace

TEST_CASE("the chunks of a prompt fill a pipeline: of its time only stages - 1 chunks more are lost")
{
    constexpr std::int64_t chunks = 8;
    for (std::uint32_t stages : {2u, 4u})
        for (duration link : {duration(0), duration(10us), stage_time / 4}) {
            CAPTURE(stages);
            CAPTURE(link.count());
            tiny_file model(a_layer_each(stages));
            auto const options = staged(model.path(), static_cast<std::int32_t>(stages), link);
            auto const found = run_all(options, {prompt_of(chunks * chunk_tokens, 1)});
            CHECK(found.steps == chunks);
            // Each device waits (stages - 1) / (chunks + stages - 1) of the time. What goes from stage to stage is
            // under way while both compute; only the first chunk is waited for.
            auto const ideal = (chunks + stages - 1) * stage_time + (stages - 1) * link;
            CHECK(found.takes >= ideal);
            CHECK(ratio(found.takes, ideal) <= 1.01);
        }
}

TEST_CASE(
    "the first stage has its tokens from the last one, not from the host: a host that is slow to issue costs nothing")
{
    constexpr std::int64_t tokens = 100;
    for (std::int64_t stages : {2, 3}) {
        CAPTURE(stages);
        tiny_file model(a_layer_each(static_cast<std::uint32_t>(stages)));
        std::vector<request> const requests(static_cast<std::size_t>(stages), prompt_of(1, tokens));
        auto options = staged(model.path(), static_cast<std::int32_t>(stages), {});
        options.simulated->each.issue = 20us; // a step is two dozen operations: half of a stage's time
        auto const found = run_all(options, requests);
        // What the host does for the first step, and until all of the requests have come, nothing hides.
        auto const ideal = (stages * tokens + stages - 1) * stage_time;
        CHECK(ratio(found.takes, ideal) <= 1.01);
        CHECK(found.answers == run_all(staged(model.path(), 1, {}), requests).answers);
    }
}

TEST_CASE("as many sequences as stages keep every stage of a pipeline busy")
{
    constexpr std::int64_t stages = 4, tokens = 120;
    tiny_file model(a_layer_each(stages));
    std::vector<request> const requests(stages, prompt_of(1, tokens));
    auto const found = run_all(staged(model.path(), stages, {}), requests);
    // A token leaves the last stage each time that a stage takes, once the first has come through. (All but one of the
    // requests come while the first step runs, and begin when it has ended.)
    auto const ideal = (stages * tokens + stages - 1) * stage_time;
    CHECK(found.takes >= ideal);
    CHECK(ratio(found.takes, ideal) <= 1.01);
}
