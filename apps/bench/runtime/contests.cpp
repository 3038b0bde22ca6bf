#include <plait/apps/bench/runtime/contest.hpp>

#include <plait/apps/bench/runtime/compile.hpp>
#include <plait/apps/bench/runtime/peers/asio/asio.hpp>
#include <plait/apps/bench/runtime/peers/bare/bare.hpp>
#include <plait/apps/bench/runtime/peers/caf/caf.hpp>
#include <plait/apps/bench/runtime/peers/tbb/tbb.hpp>
#include <plait/apps/bench/runtime/peers/threads/threads.hpp>
#include <plait/apps/bench/runtime/plait/plait.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

#include <utility>

namespace plait::bench {

namespace {

/// Whether CAF and TBB are built in. What a discarded branch names need not be there.
constexpr bool packaged = PLAIT_BENCH_PEERS;

constexpr double at_least(double times) // times as fast
{
    return 1 / times;
}

contest await_child()
{
    auto c = among("await a child", 1, {"", with_plait::await_child, 200'000});
    c.rivals.push_back({"bare coroutine", bare::await_child, 200'000, 1.5});
    c.rivals.push_back({"Asio", with_asio::await_child, 100'000, at_least(1)});
    c.most_allocations = 0;
    return c;
}

contest ask_beside()
{
    auto c = among("ask, one thread", 1, {"", with_plait::ask_beside, 100'000});
    c.rivals.push_back({"bare coroutine", bare::await_child, 200'000, 3});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::ask_beside, 4'000, at_least(10)});
    c.rivals.push_back({"Asio", with_asio::ask_beside, 4'000});
    c.most_allocations = 0;
    return c;
}

contest ask_across()
{
    auto c = among("ask, spinning", 2, {"", with_plait::ask_across, 5'000});
    c.rivals.push_back({"cache line", bare::line_round_trip, 10'000, 2.5});
    if constexpr (packaged) {
        c.rivals.push_back({"CAF, its choice", with_caf::ask_across, 4'000});
        c.rivals.push_back({"CAF, a thread each", with_caf::ask_asleep, 500, at_least(3)});
    }
    return c;
}

contest ask_asleep()
{
    auto c = among("ask, sleeping", 2, {"", with_plait::ask_asleep, 500});
    c.rivals.push_back({"futex", bare::futex_round_trip, 500, 1.2});
    c.rivals.push_back({"threads", with_threads::ask_asleep, 500});
    c.rivals.push_back({"Asio", with_asio::ask_asleep, 500});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::ask_asleep, 500});
    return c;
}

contest spawn_and_stop()
{
    auto c = among("spawn and stop", 1, {"", with_plait::spawn_and_stop, 20'000});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::spawn_and_stop, 500, at_least(5)});
    c.rivals.push_back({"threads", with_threads::spawn_and_stop, 100});
    c.show_allocations = true;
    return c;
}

contest many_to_many()
{
    auto c = among("channel, 4 to 4", 1, {"", with_plait::many_to_many, 100'000});
    c.rivals.push_back({"Asio", with_asio::many_to_many, 20'000, at_least(3)});
    c.most_allocations = 0;
    return c;
}

contest many_to_many_across()
{
    auto c = among("channel, 4 to 4", 2, {"", with_plait::many_to_many_across, 100'000});
    c.rivals.push_back({"Asio", with_asio::many_to_many_across, 20'000, at_least(3)});
    c.rivals.push_back({"8 threads", with_threads::many_to_many_across, 10'000});
    c.most_allocations = 0;
    return c;
}

contest flood()
{
    auto c = among("flood, 4 to 1", 2, {"", with_plait::flood, 40'000});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::flood, 10'000, at_least(4)});
    return c;
}

contest tree_of_tasks()
{
    auto c = among("tree of tasks", 1, {"", with_plait::tree_of_tasks, 1'000'000});
    if constexpr (packaged) c.rivals.push_back({"TBB", with_tbb::tree_of_tasks, 1'000'000, 2});
    c.most_rounds = 7;
    return c;
}

contest tree_of_actors()
{
    auto c = among("tree of actors", 1, {"", with_plait::tree_of_actors, 1'000'000});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::tree_of_actors, 1'000'000, at_least(5)});
    c.most_rounds = 3;
    return c;
}

contest idle_actor()
{
    auto c = among("idle actor", 1, {"", with_plait::idle_actor, 100'000});
    if constexpr (packaged) c.rivals.push_back({"CAF", with_caf::idle_actor, 100'000});
    c.unit = "bytes";
    c.target = 512;
    c.most_rounds = 1;
    return c;
}

/// Whatever waits, it takes as long for each of many as of few.
contest cancel(std::string name, sample (*own)(std::int64_t), sample (*asio)(std::int64_t))
{
    auto c = among(std::move(name), 1, {"", own, 100'000});
    c.rivals.push_back({"plait, 1,000", own, 1'000, 2});
    c.rivals.push_back({"Asio", asio, 100'000});
    c.most_rounds = 7;
    return c;
}

contest cancel_results()
{
    auto c = cancel("cancel, results", with_plait::cancel_results, with_asio::cancel_results);
    c.most_allocations = 0;
    return c;
}

contest cancel_throwing()
{
    auto c = cancel("cancel, throwing", with_plait::cancel_throwing, with_asio::cancel_throwing);
    c.show_allocations = true;
    return c;
}

contest arm_and_cancel()
{
    auto c = among("timers, cancel", 1, {"", with_plait::arm_and_cancel, 1'000'000});
    c.rivals.push_back({"Asio", with_asio::arm_and_cancel, 1'000'000, at_least(5)});
    c.most_rounds = 5;
    return c;
}

contest arm_and_fire()
{
    auto c = among("timers, fire", 1, {"", with_plait::arm_and_fire, 1'000'000});
    c.rivals.push_back({"Asio", with_asio::arm_and_fire, 1'000'000, at_least(5)});
    c.most_rounds = 3;
    return c;
}

contest wait_with_timers()
{
    auto c = among("timers, waiting", 1, {"", with_plait::wait_with_timers, 1'000'000});
    c.unit = "ms CPU";
    c.target = 2; // a thousandth of the time
    c.most_rounds = 1;
    return c;
}

contest compile_header(std::filesystem::path const& headers)
{
    auto reads = [&headers](std::string const& includes) {
        return [headers, includes](std::int64_t) { return compile(includes, headers); };
    };
    auto c = among("actors.hpp alone", 1, {"", reads("#include <plait/actors/actors.hpp>\n"), 1});
    c.rivals.push_back({"Asio's coroutines", reads("#include <asio/awaitable.hpp>\n#include <asio/co_spawn.hpp>\n"
                                                   "#include <asio/io_context.hpp>\n#include <asio/steady_timer.hpp>\n"
                                                   "#include <asio/use_awaitable.hpp>\n")});
    if constexpr (packaged) c.rivals.push_back({"CAF", reads("#include <caf/all.hpp>\n")});
    c.unit = "ms";
    c.target = 1000;
    c.most_rounds = 5;
    return c;
}

} // namespace

std::vector<contest> contests(std::filesystem::path const& headers)
{
    std::vector<contest> out{await_child(), ask_beside()};
    if (processor(1)) out.push_back(ask_across()); // two that spin on one processor only keep each other from running
    for (auto* make :
         {ask_asleep, spawn_and_stop, many_to_many, many_to_many_across, flood, tree_of_tasks, tree_of_actors,
          idle_actor, cancel_results, cancel_throwing, arm_and_cancel, arm_and_fire, wait_with_timers})
        out.push_back(make());
    if (has_compiler() && exists(headers / "plait/actors/actors.hpp")) out.push_back(compile_header(headers));
    return out;
}

} // namespace plait::bench
