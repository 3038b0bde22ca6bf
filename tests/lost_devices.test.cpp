// Devices that fail or hang under a running engine: its readers see a pause, the tokens are those that they would have
// had, and everything comes back.

#include <plait/actors/simulation/simulation.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/faulty_device.hpp>
#include <plait/tests/support/seeds.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

tiny_model_options small_model()
{
    return {.layers = 2, .width = 32, .heads = 2, .kv_heads = 2, .ffn = 64};
}

engine_options small_engine(std::filesystem::path const& model, parallelism spread)
{
    auto out = tiny_engine(model);
    out.context = 128;
    out.kv_tokens = 256;
    out.step_tokens = 24;
    out.spread = spread;
    out.hang_limit = std::chrono::seconds(1);
    return out;
}

/// The first device of rank `rank` has the fault; those made later have none.
device_maker with_fault(std::size_t rank, fault f)
{
    auto made = std::make_shared<bool>(false);
    return [=](std::size_t which, std::shared_ptr<host::compute_pool> pool,
               std::size_t memory) -> std::unique_ptr<device> {
        if (which == rank && !std::exchange(*made, true))
            return std::make_unique<faulty_device>(std::move(pool), memory, f);
        return std::make_unique<host::host_device>(std::move(pool), memory);
    };
}

constexpr std::int64_t tokens = 12;

std::vector<collected> expected_answers(std::filesystem::path const& model)
{
    std::vector<collected> out;
    parallelism const alone{1, 1, 2};
    simulation all;
    auto body = [&]() -> task<> {
        auto running = co_await open(all.home(), small_engine(model, alone));
        out = co_await collect_together(running, some_requests(tokens));
        co_await running.close();
    };
    all.run(body());
    return out;
}

} // namespace

TEST_CASE("a device that is lost or hangs at any point costs its readers time, and no token")
{
    tiny_file model(small_model());
    auto const alone = expected_answers(model.path());
    for (auto spread : {parallelism{1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}) {
        CAPTURE(spread.tensor);
        CAPTURE(spread.pipeline);
        std::int64_t restarts = 0;
        auto run = [&](simulation& all) {
            frame_check frames;
            auto body = [&]() -> task<> {
                std::mt19937_64 random(all.home().random_seed());
                auto options = small_engine(model.path(), spread);
                fault f;
                f.after = static_cast<std::int64_t>(random() % 1200);
                if (random() % 2 == 0) f.what = fault::kind::hangs;
                options.make_device = with_fault(random() % static_cast<std::size_t>(spread.ranks()), f);
                auto running = co_await open(all.home(), std::move(options));
                f.armed->store(true);
                auto answers = co_await collect_together(running, some_requests(tokens));
                for (std::size_t i = 0; i < answers.size(); ++i)
                    if (!(answers[i] == alone[i])) throw std::runtime_error("answer " + std::to_string(i) + " differs");
                auto stats = co_await running.stats();
                restarts += stats.restarts;
                co_await drained(running);
                co_await running.close();
            };
            all.run(body());
        };
        check_seeds(run, 125);
        if (!environment("PLAIT_SEED")) CHECK(restarts > 20);
    }
}

CO_TEST_CASE("a device that is lost on threads costs no token either")
{
    tiny_file model(small_model());
    auto const alone = expected_answers(model.path());
    for (auto spread : {parallelism{1, 1, 2}, {2, 1, 2}, {2, 2, 2}})
        for (std::int64_t after : {0, 100, 300, 700}) {
            auto options = small_engine(model.path(), spread);
            options.hang_limit = std::chrono::minutes(5); // a machine may be slow
            fault f;
            f.after = after;
            options.make_device = with_fault(static_cast<std::size_t>(spread.ranks()) - 1, f);
            auto const record = std::make_shared<trace>();
            options.record = record;
            auto running = co_await open(rt, std::move(options));
            f.armed->store(true);
            auto answers = co_await collect_together(running, some_requests(tokens));
            CHECK(answers == alone);
            co_await drained(running);
            auto const stats = co_await running.stats();
            co_await running.close();
            // Devices that were made anew are others in the picture. The one with the fault records nothing.
            std::set<std::string> devices;
            for (auto const& operation : record->operations())
                devices.insert(std::string(operation.part.substr(0, operation.part.find(':'))));
            if (after == 0) CHECK(stats.restarts == 1);
            CHECK(std::ssize(devices) == spread.ranks() * (1 + stats.restarts) - 1);
            if (stats.restarts > 0) CHECK(devices.contains("device 0, made 2 times"));
        }
}

CO_TEST_CASE("devices that are lost every time end the requests with an error, and the engine")
{
    tiny_file model(small_model());
    auto options = small_engine(model.path(), {2, 1});
    options.restarts = 2;
    options.hang_limit = std::chrono::minutes(5);
    int made = 0;
    // Loads, and then fails within a step.
    auto armed = std::make_shared<std::atomic<bool>>(false);
    options.make_device = [&made, armed](std::size_t rank, std::shared_ptr<host::compute_pool> pool,
                                         std::size_t memory) -> std::unique_ptr<device> {
        ++made;
        fault f;
        f.after = rank == 1 ? 20 : 1'000'000;
        f.armed = armed;
        return std::make_unique<faulty_device>(std::move(pool), memory, f);
    };
    auto running = co_await open(rt, std::move(options));
    armed->store(true);
    auto answer = co_await collect_from(running, ask_for("hello", 50));
    CHECK(answer.result.choices[0].finish == finish_reason::failed);
    auto stats = co_await running.stats();
    CHECK(stats.restarts <= 2);
    auto later = co_await as_result(running.submit(ask_for("again", 5)));
    CHECK(later.error() == errc::engine_failed);
    co_await running.close();
    CHECK(made >= 4);
}
