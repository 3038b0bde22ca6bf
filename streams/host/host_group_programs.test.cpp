#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <plait/actors/error.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>
#include <plait/tests/support/seeds.hpp>
#include <plait/tests/support/test_group.hpp>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

/// One collective of a program. Of a send, `root` sends and `peer` receives.
struct step {
    collective_kind kind = collective_kind::all_reduce;
    std::size_t group = 0;
    int root = 0;
    int peer = 0;
    std::int64_t count = 0;
    int parts = 1;

    bool paired() const { return kind == collective_kind::send; }
    bool has(int rank) const { return !paired() || rank == root || rank == peer; }
};

/// A step as one rank makes it: perhaps not as it should.
struct turn {
    std::size_t number; ///< of the step, where its memory is
    step what;
};

/// What ranks do, at random: collectives of two groups in an order in which nobody waits for ever.
struct program {
    int ranks;
    std::vector<step> steps;
    std::vector<std::vector<turn>> turns; ///< of each rank

    explicit program(std::mt19937& random)
        : ranks(2 + static_cast<int>(random() % 7))
    {
        auto const n = static_cast<std::uint32_t>(ranks);
        steps.resize(4 + random() % 12);
        for (auto& s : steps) {
            s.kind = static_cast<collective_kind>(random() % 6); // a send is the receive too
            s.group = random() % 2;
            s.root = static_cast<int>(random() % n);
            s.peer = static_cast<int>((static_cast<std::uint32_t>(s.root) + 1 + random() % (n - 1)) % n);
            s.count = random() % 40;
            bool const sums = s.kind == collective_kind::all_reduce || s.kind == collective_kind::reduce_scatter;
            if (sums) s.parts = 1 + static_cast<int>(random() % 3);
        }
        // Both groups get to know all devices: they hear of the failures of those that have put something.
        for (std::size_t i = 0; i < 2; ++i) {
            steps[i] = step();
            steps[i].group = i;
            steps[i].count = 1;
        }
        turns.resize(n);
        for (int rank = 0; rank < ranks; ++rank)
            for (std::size_t i = 0; i < steps.size(); ++i)
                if (steps[i].has(rank)) turns[static_cast<std::size_t>(rank)].push_back({i, steps[i]});
    }

    static std::int64_t line(std::size_t number, int rank) { return static_cast<std::int64_t>(number) * 10 + rank; }
};

/// The memory of all steps of all ranks: it outlives their devices. Values are small whole numbers, but the order of a
/// sum is another test's.
struct memory {
    std::vector<std::vector<std::vector<float>>> in, out; ///< [step][rank]

    explicit memory(program const& p)
        : in(p.steps.size())
        , out(p.steps.size())
    {
        for (std::size_t i = 0; i < p.steps.size(); ++i)
            for (int rank = 0; rank < p.ranks; ++rank) {
                // More than is needed: a call may be wrong.
                in[i].emplace_back(1000);
                out[i].emplace_back(1000, -1.0f);
                for (std::size_t at = 0; at < 1000; ++at)
                    in[i].back()[at] = static_cast<float>((at * 7 + i * 5 + static_cast<std::size_t>(rank) * 3) % 101);
            }
    }

    /// Whether the rank got what the step gives it.
    bool right(program const& p, std::size_t number, int rank) const
    {
        auto const& s = p.steps[number];
        auto const& inputs = in[number];
        auto const count = static_cast<std::size_t>(s.count);
        auto const r = static_cast<std::size_t>(rank);
        auto const ranks = inputs.size();
        bool const scatters = s.kind == collective_kind::reduce_scatter;
        auto const summed = [&](std::size_t at) {
            float total = 0;
            for (auto const& input : inputs)
                for (std::size_t part = 0; part < static_cast<std::size_t>(s.parts); ++part)
                    total += input[part * count * (scatters ? ranks : 1) + at];
            return total;
        };
        auto const expected = [&](std::size_t at) {
            switch (s.kind) {
            case collective_kind::all_reduce:
                return summed(at);
            case collective_kind::reduce_scatter:
                return summed(r * count + at);
            case collective_kind::all_gather:
                return inputs[at / count][at % count];
            case collective_kind::all_to_all:
                return inputs[at / count][r * count + at % count];
            default:
                return inputs[static_cast<std::size_t>(s.root)][at];
            }
        };
        bool const gathers = s.kind == collective_kind::all_gather || s.kind == collective_kind::all_to_all;
        auto const size = gathers ? count * ranks : count;
        if (s.paired() && rank == s.root) return true;
        for (std::size_t at = 0; at < size; ++at)
            if (out[number][r][at] != expected(at)) return false;
        return out[number][r][size] == -1.0f;
    }
};

using groups = std::vector<std::vector<std::unique_ptr<communicator>>>;

groups make_groups(runtime& rt, int ranks, host::host_group_options options)
{
    options.fabric = host::make_host_fabric();
    groups made;
    for (auto const* name : {"a", "b"}) {
        options.name = name;
        made.push_back(host::make_host_group(rt, ranks, options));
    }
    return made;
}

collective_call call_of(turn const& t, int rank, memory& m)
{
    collective_call call;
    auto const r = static_cast<std::size_t>(rank);
    bool const sends = t.what.paired() && rank == t.what.root;
    call.kind = t.what.paired() && !sends ? collective_kind::receive : t.what.kind;
    call.in = m.in[t.number][r].data();
    call.out = sends ? nullptr : m.out[t.number][r].data();
    call.count = t.what.count;
    call.parts = t.what.parts;
    call.peer = t.what.paired() && sends ? t.what.peer : t.what.root;
    call.where = {"program", static_cast<unsigned>(program::line(t.number, rank))};
    return call;
}

/// A host that waits for one collective before it puts the next may keep others from theirs in ways that no group sees.
enum class waits : std::uint8_t { now_and_then, at_the_end };

/// Makes a rank's turns with delays between them, and waits for some of them and for the last. `before` comes before
/// each.
task<> make_turns(runtime& rt, test_gpu& g, int rank, program const& p, memory& m, groups const& all,
                  std::uint64_t seed, waits when = waits::now_and_then,
                  std::function<task<>(std::size_t turn)> before = {})
{
    std::mt19937 random(static_cast<std::uint32_t>(seed * 8 + static_cast<std::uint64_t>(rank)));
    auto& stream = g.flow_on(stream_role::communication).enter();
    auto const& turns = p.turns[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < turns.size(); ++i) {
        auto const delay = random() % 4;
        if (delay == 0) co_await this_task::yield();
        if (delay == 1) (void)co_await as_result(rt.clock().sleep_for(1us * (random() % 100))); // a stop cuts it short
        if (before) co_await before(i);
        auto const t =
            all[turns[i].what.group][static_cast<std::size_t>(rank)]->put(stream, call_of(turns[i], rank, m));
        if (when == waits::now_and_then && random() % 3 == 0) {
            co_await t;
            if (!m.right(p, turns[i].number, rank)) throw std::logic_error("a wrong result");
        }
    }
    co_await stream.last();
}

host::host_group_options options_of(std::mt19937& random)
{
    host::host_group_options options;
    options.check = true;
    if (random() % 2 == 0) options.link.latency = 1us * (random() % 50);
    if (random() % 2 == 0) options.link.bytes_per_second = 1e6 * (1 + random() % 100);
    return options;
}

/// Runs a random program to its end, under a stop that may come at any time, and throws where something is wrong.
task<> run_random_program(runtime& rt, std::uint64_t seed, stop_token stop)
{
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    program const p(random);
    memory m(p);
    auto const all = make_groups(rt, p.ranks, options_of(random));
    rank_body const rank = [&](test_gpu& g, int r) -> task<> {
        task<> turns = make_turns(rt, g, r, p, m, all, seed);
        auto const outcome = co_await under(stop, std::move(turns));
        if (!outcome) std::rethrow_exception(outcome.failure());
    };
    co_await on_ranks(rt, p.ranks, 1, rank);
    for (std::size_t i = 0; i < p.steps.size(); ++i)
        for (int r = 0; r < p.ranks; ++r)
            if (p.steps[i].has(r) && !m.right(p, i, r)) throw std::logic_error("a wrong result in the end");
}

/// Makes one rank's turns wrong in such a way that a rank has to hear of it. Gives the numbers of the steps.
std::vector<std::size_t> spoil(program& p, int& rank, std::mt19937& random)
{
    auto const different = [](step const& a, step const& b) {
        bool const sums = a.kind == collective_kind::all_reduce || a.kind == collective_kind::reduce_scatter;
        return a.group != b.group || a.kind != b.kind || a.count != b.count || (sums && a.parts != b.parts) ||
               (a.kind == collective_kind::broadcast && a.root != b.root);
    };
    for (;;) {
        rank = static_cast<int>(random() % static_cast<std::uint32_t>(p.ranks));
        auto& turns = p.turns[static_cast<std::size_t>(rank)];
        auto const i = random() % turns.size();
        auto& t = turns[i];
        switch (random() % 4) {
        case 0:
            ++t.what.count;
            return {t.number};
        case 1:
            if (t.what.kind == collective_kind::broadcast) {
                t.what.root = (t.what.root + 1) % p.ranks;
                return {t.number};
            }
            break;
        case 2:
            if (t.what.kind == collective_kind::all_reduce) {
                t.what.kind = collective_kind::broadcast;
                return {t.number};
            }
            break;
        default:
            // Two of a group in another order are unlike those of the others, two of two groups a circle.
            if (i + 1 < turns.size() && !t.what.paired() && !turns[i + 1].what.paired() &&
                different(t.what, turns[i + 1].what)) {
                std::swap(t, turns[i + 1]);
                return {t.number, turns[i + 1].number};
            }
        }
    }
}

void check_spoilt_program(simulation& sim)
{
    auto const body = [](simulation& sim) -> task<> {
        std::mt19937 random(sim.choose(1u << 31));
        program p(random);
        int spoilt_by = 0;
        auto const spoilt = spoil(p, spoilt_by, random);
        memory m(p);
        auto& rt = sim.home();
        auto const all = make_groups(rt, p.ranks, options_of(random));
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            co_await make_turns(rt, g, r, p, m, all, sim.choose(1000), waits::at_the_end);
        };
        auto const outcomes = co_await outcomes_on_ranks(rt, p.ranks, 1, rank);
        std::set<std::string> texts;
        for (auto const& outcome : outcomes)
            if (!outcome) texts.insert(text_of(outcome));
        if (texts.size() != 1) throw std::logic_error(std::to_string(texts.size()) + " different reports");
        auto const& text = *texts.begin();
        auto const names = [&](auto wanted) {
            for (auto number : spoilt)
                for (int r = 0; r < p.ranks; ++r) {
                    auto const place = "put at program:" + std::to_string(program::line(number, r));
                    bool const found = text.find(place + ",") != text.npos || text.find(place + ":") != text.npos;
                    if (found && wanted(r)) return true;
                }
            return false;
        };
        if (!names([&](int r) { return r == spoilt_by; })) throw std::logic_error("the wrong place is not in: " + text);
        if (!names([&](int r) { return r != spoilt_by; })) throw std::logic_error("no other place is in: " + text);
        if (sim.now().time_since_epoch() > 1s) throw std::logic_error("reported late");
    };
    sim.run(body(sim));
}

enum class trouble : std::uint8_t { aborts, leaves, breaks, sleeps };

/// One rank gets into trouble before one of its turns; all who need it later end with that cause.
task<> run_troubled_program(runtime& rt, std::uint64_t seed)
{
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    program const p(random);
    memory m(p);
    auto options = options_of(random);
    options.hang_limit = rt.simulated() ? duration(2s) : duration(5min); // a machine may be slow
    auto all = make_groups(rt, p.ranks, options);
    auto const who = static_cast<std::size_t>(random() % static_cast<std::uint32_t>(p.ranks));
    auto const& turns = p.turns[who];
    auto const when = 2 + random() % (turns.size() - 1);
    auto const what = static_cast<trouble>(random() % (rt.simulated() ? 4 : 3)); // no real time is spent on a hang
    auto const cause = std::make_exception_ptr(std::runtime_error("the cause"));
    rank_body const rank = [&](test_gpu& g, int r) -> task<> {
        auto const troubled = static_cast<std::size_t>(r) == who;
        std::function<task<>(std::size_t)> const before = [&](std::size_t turn) -> task<> {
            if (!troubled || turn != when) co_return;
            switch (what) {
            case trouble::aborts:
                for (auto const& group : all)
                    group[who]->abort(cause);
                break;
            case trouble::leaves:
                for (auto& group : all)
                    group[who].reset();
                throw std::runtime_error("the cause");
            case trouble::breaks:
                g.dev().abort(cause);
                break;
            case trouble::sleeps:
                co_await rt.clock().sleep_for(10s);
                break;
            }
        };
        co_await make_turns(rt, g, r, p, m, all, seed, waits::now_and_then, before);
    };
    auto const outcomes = co_await outcomes_on_ranks(rt, p.ranks, 1, rank);
    auto const caused = [&](std::string const& text) {
        switch (what) {
        case trouble::leaves:
            return text == "the cause" ||
                   text.find("needs rank " + std::to_string(who) + ", whose communicator is gone") != std::string::npos;
        case trouble::sleeps:
            return text.find("a collective hangs since") != std::string::npos;
        default:
            return text == "the cause";
        }
    };
    for (auto const& outcome : outcomes)
        if (!outcome && !caused(text_of(outcome))) throw std::logic_error("another cause: " + text_of(outcome));
    // Whoever shares a collective with the troubled rank from then on.
    for (auto i = when; i < turns.size(); ++i)
        for (std::size_t r = 0; r < outcomes.size(); ++r)
            if (turns[i].what.has(static_cast<int>(r)) && outcomes[r]) throw std::logic_error("a rank ended well");
}

} // namespace

TEST_CASE("programs of collectives end in whatever order things happen, with the right results")
{
    frame_check frames;
    simulation_options options;
    options.held_places = 200;
    options.longest_hold = 1ms;
    auto const body = [](simulation& sim) {
        stop_source stop;
        auto const fault = sim.sometimes(2000, [&] { stop.request_stop(); });
        sim.run(run_random_program(sim.home(), sim.choose(1u << 31), stop.token()));
    };
    check_seeds(body, 1000, options);
}

TEST_CASE("a program with one wrong call is reported, with the wrong place and a right one")
{
    frame_check frames;
    check_seeds(check_spoilt_program, 200);
}

TEST_CASE("a rank that fails, leaves or hangs ends all who need it, with its cause")
{
    frame_check frames;
    auto const body = [](simulation& sim) { sim.run(run_troubled_program(sim.home(), sim.choose(1u << 31))); };
    check_seeds(body, 500);
}

CO_TEST_CASE("programs of collectives run on threads as well")
{
    for (std::uint64_t seed = 1; seed <= seeds(15); ++seed)
        co_await run_random_program(rt, seed, stop_token());
}

CO_TEST_CASE("a rank that fails or leaves ends the others on threads as well")
{
    for (std::uint64_t seed = 1; seed <= seeds(30); ++seed)
        co_await run_troubled_program(rt, seed);
}
