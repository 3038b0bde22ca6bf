#include <plait/tests/models/check.hpp>

#include <plait/streams/host/share_turns.hpp>

#include <optional>

using namespace plait;
using model::model_atomics;
using model::plain;
using model::search;

namespace {

/// Worker 0 publishes operations, one after the other, with one share a worker, and then sends the others away. Each
/// share reads the operation and writes its result; worker 0 reads the results and goes on.
template<int Workers, int Operations>
struct pool : rl::test_suite<pool<Workers, Operations>, Workers> {
    struct shared {
        host::share_turns<model_atomics, 1> turns;
        plain<int> operation{0};
        std::array<plain<int>, Workers> results{};
    };
    std::optional<shared> home;
    host::departures<model_atomics> departures;

    void run_shares()
    {
        for (;;) {
            auto const index = home->turns.take();
            if (index >= Workers) return;
            home->results[index] = int(home->operation);
            home->turns.finish();
        }
    }
    void before()
    {
        home.emplace();
        for (auto& r : home->results)
            r = 0;
    }
    void thread(unsigned index)
    {
        if (index == 0) {
            for (int operation = 1; operation <= Operations; ++operation) {
                home->operation = operation;
                home->turns.publish();
                home->turns.call();
                run_shares();
                home->turns.wait_for(Workers);
                for (auto const& r : home->results)
                    RL_ASSERT(r == operation);
            }
            home->turns.close();
            home->turns.call();
            departures.wait_for(Workers - 1);
            home.reset();
        } else {
            for (std::uint32_t seen = 0;;) {
                seen = home->turns.wait_for_call(seen);
                if (home->turns.closing()) break;
                run_shares();
            }
            departures.leave();
        }
    }
};

} // namespace

TEST_CASE("each share of each operation is run once and seen by worker 0, who ends when all have left")
{
    model::check_protocol<pool<2, 1>, pool<2, 2>, pool<3, 2>>(
        "streams/host/share_turns.hpp", {search::interrupted(3), search::interrupted(2), search::at_random(50'000)});
}
