#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/engine/costs.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/small_tokenizer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <malloc.h>

using namespace plait;
using namespace plait::test;

namespace {

tiny_model_options four_layers(ggml_type weights)
{
    return {.layers = 4, .width = 128, .heads = 4, .kv_heads = 2, .ffn = 256, .weights = weights};
}

task<std::vector<collected>> answers_of(runtime& rt, engine_options options)
{
    auto running = co_await open(rt, std::move(options));
    auto out = co_await collect_together(running, some_requests(24));
    co_await drained(running);
    co_await running.close();
    co_return out;
}

std::string text_of(parallelism const& p)
{
    return std::to_string(p.tensor) + " x " + std::to_string(p.pipeline) + ", sums of " + std::to_string(p.sum_parts);
}

} // namespace

CO_TEST_CASE("answers are the same on every number of devices, in ranks, stages and both")
{
    for (auto weights : {ggml_type::f32, ggml_type::q4_1}) {
        tiny_file model(four_layers(weights));
        auto options = tiny_engine(model.path());
        options.threads = 2;
        options.step_tokens = 32; // prompts come in chunks
        options.check_collectives = true;
        options.spread = {1, 1, 4};
        auto expected = co_await answers_of(rt, options);
        for (auto spread : {parallelism{2, 1, 4}, {4, 1, 4}, {1, 2, 4}, {1, 4, 4}, {2, 2, 4}, {4, 3, 4}}) {
            CAPTURE(text_of(spread));
            options.spread = spread;
            auto found = co_await answers_of(rt, options);
            CHECK(found == expected);
        }
    }
}

CO_TEST_CASE("stages alone change no bit of an answer")
{
    tiny_file model(four_layers(ggml_type::q8_0));
    auto options = tiny_engine(model.path());
    auto expected = co_await answers_of(rt, options);
    for (std::int32_t stages : {2, 3, 4}) {
        options.spread.pipeline = stages;
        auto found = co_await answers_of(rt, options);
        CHECK(found == expected);
    }
}

CO_TEST_CASE("mixtures of experts answer the same in ranks, stages and both")
{
    for (auto const* family : {"mixtral", "qwen3_moe", "glm4_moe", "gpt_oss_mxfp4"}) {
        CAPTURE(family);
        temporary_folder folder;
        for (auto const* file : {"config.json", "model.safetensors"})
            std::filesystem::copy_file(test_data("families") / family / file, folder.path() / file);
        folder.write("tokenizer.json", small_tokenizer(96));
        auto options = tiny_engine(folder.path());
        options.context = 128;
        options.check_collectives = true;
        std::vector<collected> expected;
        for (auto spread : {parallelism{1, 1, 2}, {1, 2, 2}, {2, 1, 2}, {2, 2, 2}}) {
            CAPTURE(text_of(spread));
            options.spread = spread;
            auto found = co_await answers_of(rt, options);
            if (expected.empty()) expected = found;
            CHECK(found == expected);
        }
    }
}

CO_TEST_CASE("each device gets its part of the memory, and the plan is of one of them")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    auto whole = plan(options);
    options.spread = {2, 2};
    auto running = co_await open(rt, options);
    auto const& info = running.info();
    CHECK(info.spread == parallelism{2, 2});
    CHECK(info.memory.memory == options.memory / 4);
    CHECK(info.memory.pages == whole.pages);
    CHECK(info.memory.kv_bytes == whole.kv_bytes / 4);
    CHECK(info.device.starts_with("4 × "));
    co_await running.close();
}

CO_TEST_CASE("replicas share out the requests, and answer alike")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.sequences = 4; // of each
    auto expected = co_await answers_of(rt, options);
    auto alone = plan(options);
    options.replicas = 3;
    options.spread = {1, 2};
    options.make_schedule = [] { return std::make_shared<shortest_prefill_first>(); };
    auto running = co_await open(rt, options);
    CHECK(running.info().replicas == 3);
    CHECK(running.info().memory.memory == options.memory / 6);
    auto found = co_await collect_together(running, some_requests(24));
    CHECK(found == expected);
    // Requests that stay: each replica gets its share of them.
    std::vector<generation> held;
    for (int i = 0; i < 12; ++i) {
        auto one = co_await running.submit(ask_for("stay", 200));
        held.push_back(std::move(one));
    }
    for (auto& one : held)
        co_await one.next();
    auto all = co_await running.stats();
    CHECK(all.running == 12); // 4 on each of 3
    CHECK(all.pages == 3 * alone.pages);
    held.clear();
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("requests that come at once are spread over the replicas as evenly as those that come one by one")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.sequences = 4; // of each: fewer than twelve run where one replica gets more than four
    options.replicas = 3;
    auto running = co_await open(rt, options);
    for (int round = 0; round < 4; ++round) {
        std::vector<task<generation>> coming;
        for (int i = 0; i < 12; ++i)
            coming.push_back(running.submit(ask_for("stay", 200)));
        auto held = co_await when_all(std::move(coming));
        for (auto& one : held)
            co_await one.next();
        auto all = co_await running.stats();
        CHECK(all.running == 12);
        held.clear();
        co_await drained(running);
    }
    // What a request counted for is given back when it is refused, too.
    for (int i = 0; i < 5; ++i) {
        auto refused = co_await as_result(running.submit(ask_for("", 0)));
        CHECK(refused.failure());
    }
    std::vector<generation> held;
    for (int i = 0; i < 6; ++i) {
        auto two = ask_for("stay", 200);
        two.choices = 2;
        auto one = co_await running.submit(std::move(two));
        held.push_back(std::move(one));
    }
    for (auto& one : held)
        co_await one.next();
    auto all = co_await running.stats();
    CHECK(all.running == 12);
    held.clear();
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a policy is not shared by replicas")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.schedule = std::make_shared<first_come_first_served>();
    options.replicas = 2;
    auto outcome = co_await as_result(open(rt, options));
    CHECK(outcome.error() == errc::invalid_argument);
}

CO_TEST_CASE("a model that the devices can't share is refused before anything is made")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    for (auto spread : {parallelism{3, 1}, {1, 5}, {2, 1, 3}}) {
        options.spread = spread;
        auto outcome = co_await as_result(open(rt, options));
        CHECK(outcome.error() == errc::invalid_argument);
    }
}

CO_TEST_CASE("many visitors come and go on ranks and stages, and every page comes back")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.kv_tokens = 400; // some have to give way
    for (auto spread : {parallelism{2, 1}, {1, 2}, {2, 2}}) {
        options.spread = spread;
        auto running = co_await open(rt, options);
        auto body = [&](scope& all) -> task<> {
            for (std::uint64_t seed = 1; seed <= 40; ++seed)
                all.start(visit(running, seed));
            co_return;
        };
        co_await with_scope(body);
        co_await drained(running);
        co_await running.close();
    }
}

namespace {

/// Divides every step into lanes at random: sequences here and there, chunks of a prompt over several.
class lanes_at_random final : public policy {
public:
    explicit lanes_at_random(std::uint32_t seed)
        : random_(seed)
    {
    }

    step_plan next(snapshot const& now) override
    {
        auto whole = first_come_first_served().next(now);
        step_plan plan;
        plan.preempt = whole.preempt;
        auto lanes = 1 + random_() % static_cast<std::size_t>(now.lanes);
        for (std::size_t i = 0; i < lanes; ++i)
            plan.lanes.push_back(random_() % 3 == 0 ? stream_role::urgent : stream_role::compute);
        for (auto const& entry : whole.entries) {
            auto left = entry.tokens;
            for (auto lane = random_() % lanes; left > 0; ++lane) {
                auto last = lane + 1 == lanes;
                auto count = last ? left : 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(left));
                plan.entries.push_back({entry.id, count, static_cast<std::int32_t>(lane)});
                left -= count;
            }
        }
        return plan;
    }

private:
    std::mt19937 random_;
};

} // namespace

CO_TEST_CASE("however a policy divides its steps into lanes, answers are the same")
{
    tiny_file model(four_layers(ggml_type::q4_1));
    auto options = tiny_engine(model.path());
    options.step_tokens = 40;
    options.spread = {1, 1, 2};
    auto expected = co_await answers_of(rt, options);
    options.lanes = 4;
    for (auto spread : {parallelism{1, 1, 2}, {2, 1, 2}, {2, 2, 2}})
        for (std::uint32_t seed = 1; seed <= 6; ++seed) {
            CAPTURE(seed);
            options.spread = spread;
            options.schedule = std::make_shared<lanes_at_random>(seed);
            auto found = co_await answers_of(rt, options);
            CHECK(found == expected);
        }
}

CO_TEST_CASE("answers are the same whatever a cost model makes of the steps")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.step_tokens = 40;
    options.spread = {2, 1};
    auto expected = co_await answers_of(rt, options);
    using namespace std::chrono_literals;
    struct alternating final : cost_model {
        mutable int asked = 0;
        duration fused(step_shape const&) const override { return 2ms; }
        duration split(step_shape const&) const override { return ++asked % 2 == 0 ? 1ms : 3ms; }
        duration beside(step_shape const&) const override { return 1500us; }
    };
    for (auto const& costs : {std::shared_ptr<cost_model const>(std::make_shared<alternating>()),
                              std::shared_ptr<cost_model const>(std::make_shared<linear_costs>(
                                  linear_costs::line{1us, 1us}, linear_costs::line{1ms, 1ms}, 4))}) {
        options.costs = costs;
        auto found = co_await answers_of(rt, options);
        CHECK(found == expected);
    }
}

CO_TEST_CASE("no limit for a hang is no limit at all, and the choices of a request are one prompt")
{
    tiny_file model(four_layers(ggml_type::f32));
    auto options = tiny_engine(model.path());
    options.hang_limit = duration::max();
    auto running = co_await open(rt, options);
    auto what = ask_for("x", 6);
    what.choices = 4;
    auto answer = co_await collect_from(running, what);
    auto stats = co_await running.stats();
    CHECK(stats.restarts == 0);
    CHECK(stats.prompt_tokens >= 0);
    CHECK(answer.result.choices.size() == 4);
    co_await running.close();
}

CO_TEST_CASE("stages forget the steps that are over while answers go on")
{
    auto shape = four_layers(ggml_type::f32);
    shape.context = 4096;
    tiny_file model(shape);
    auto options = tiny_engine(model.path());
    options.spread.pipeline = 2;
    auto running = co_await open(rt, options);
    std::size_t early = 0, late = 0; // bytes of the heap; none where a sanitizer has it
    // Several at a time, so that each step computes with tokens that the host has not heard of.
    auto visit = [&](bool looks) -> task<> {
        auto answer = co_await running.submit(ask_for("again", 4000));
        for (std::int64_t tokens = 0;;) {
            auto piece = co_await answer.next();
            if (!piece) co_return;
            for (std::size_t i = 0; i < piece->tokens.size(); ++i, ++tokens) {
                if (looks && tokens == 200) early = ::mallinfo2().uordblks;
                if (looks && tokens == 3800) late = ::mallinfo2().uordblks;
            }
        }
    };
    auto body = [&](scope& all) -> task<> {
        for (int i = 0; i < 4; ++i)
            all.start(visit(i == 0));
        co_return;
    };
    co_await with_scope(body);
    CHECK(late < early + (std::size_t(1) << 20));
    co_await running.close();
}
