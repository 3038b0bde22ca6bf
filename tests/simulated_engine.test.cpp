// The engine in a simulation: whatever order its actors, its device and its readers take turns in, a request's tokens
// are its own, and everything comes back.

#include <plait/actors/simulation/simulation.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/seeds.hpp>

using namespace plait;
using namespace plait::test;

namespace {

engine_options small_engine(std::filesystem::path const& model, admission admit)
{
    auto out = tiny_engine(model);
    out.context = 128;
    out.kv_tokens = 160; // the four don't fit together: some wait, or are preempted
    out.step_tokens = 24;
    out.admit = admit;
    return out;
}

} // namespace

TEST_CASE("an engine's answers are the same in whatever order its actors, its device and its readers take turns")
{
    tiny_file model;
    auto const requests = some_requests(8);
    std::vector<collected> alone;
    {
        simulation all;
        auto body = [&]() -> task<> {
            auto running = co_await open(all.home(), small_engine(model.path(), admission::reserve));
            for (auto const& r : requests) {
                auto one = co_await collect_from(running, r);
                alone.push_back(std::move(one));
            }
            co_await running.close();
        };
        all.run(body());
    }
    for (auto admit : {admission::overcommit, admission::reserve}) {
        auto together = [&](simulation& all) {
            frame_check frames;
            auto body = [&]() -> task<> {
                auto running = co_await open(all.home(), small_engine(model.path(), admit));
                auto answers = co_await collect_together(running, requests);
                for (std::size_t i = 0; i < answers.size(); ++i)
                    if (!(answers[i] == alone[i])) throw std::runtime_error("answer " + std::to_string(i) + " differs");
                co_await drained(running);
                co_await running.close();
            };
            all.run(body());
        };
        check_seeds(together, 40);
    }
}

TEST_CASE("requests that are cancelled, time out or lose their reader give everything back in every order")
{
    tiny_file model;
    auto visits = [&](simulation& all) {
        frame_check frames;
        auto body = [&]() -> task<> {
            auto const admit = all.home().random_seed() % 2 == 0 ? admission::overcommit : admission::reserve;
            auto options = small_engine(model.path(), admit);
            options.kv_tokens = 256; // each fits alone
            auto running = co_await open(all.home(), std::move(options));
            auto everyone = [&](scope& s) -> task<> {
                for (std::uint64_t i = 0; i < 6; ++i)
                    s.start(visit(running, all.home().random_seed()));
                co_return;
            };
            co_await with_scope(everyone);
            co_await drained(running);
            co_await running.close();
        };
        all.run(body());
    };
    check_seeds(visits, 60);
}
