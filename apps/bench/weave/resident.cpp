#include <plait/apps/bench/weave/workloads.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/process.hpp>
#include <plait/engine/engine.hpp>

namespace plait::bench::weaving {

namespace {

task<double> open_and_look(runtime& home, std::filesystem::path const& model, std::int32_t ranks)
{
    engine_options how;
    how.model = model;
    how.threads = 1;
    how.spread.tensor = ranks;
    how.context = how.kv_tokens = 64;
    how.sequences = 1;
    how.step_tokens = 16;
    auto const before = resident_bytes();
    auto running = co_await open(home, std::move(how));
    auto const bytes = resident_bytes() - before;
    co_await running.close();
    co_return static_cast<double>(bytes) / (1 << 20) / ranks;
}

} // namespace

sample resident_of_rank(std::filesystem::path const& model, std::int32_t ranks)
{
    sample out;
    runtime home;
    auto all = [&]() -> task<> {
        co_await open_and_look(home, model, ranks); // what stays with the process stays from here on
        out.value = co_await open_and_look(home, model, ranks);
    };
    home.run(all());
    return out;
}

} // namespace plait::bench::weaving
