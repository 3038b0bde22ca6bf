#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <plait/actors/error.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/tasks/timeout.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/place.hpp>
#include <plait/tests/support/test_group.hpp>

using namespace plait;
using namespace plait::test;
using namespace std::chrono_literals;

namespace {

using groups = std::vector<std::unique_ptr<communicator>>;

collective_call call_of(collective_kind kind, float* memory, std::int64_t count, unsigned line)
{
    collective_call call;
    call.kind = kind;
    call.in = call.out = memory;
    call.count = count;
    call.where = {"here.cpp", line};
    return call;
}

collective_call all_reduce(float* memory, unsigned line)
{
    return call_of(collective_kind::all_reduce, memory, 1, line);
}

collective_call to(collective_call call, int peer)
{
    call.peer = peer;
    return call;
}

ticket put(test_gpu& g, communicator& c, collective_call const& call)
{
    return c.put(g.flow_on(stream_role::communication).enter(), call);
}

host::host_group_options checked(std::string name = "tp")
{
    host::host_group_options options;
    options.name = std::move(name);
    options.check = true;
    return options;
}

/// Runs `body` in a simulation in which time passes only when nothing else can happen.
void simulate(std::function<task<>(simulation&)> const& body)
{
    frame_check frames;
    simulation_options options;
    options.slowness = 0;
    simulation all(options);
    all.run(body(all));
}

void check_same(std::vector<result<void>> const& outcomes, errc code, std::string const& text)
{
    for (auto const& outcome : outcomes) {
        CHECK(outcome.error() == code);
        CHECK(text_of(outcome) == text + ": " + make_error_code(code).message());
    }
}

/// What two ranks end with that put these calls.
std::vector<result<void>> outcomes_of(collective_call const& one, collective_call const& other, bool check = true)
{
    std::vector<result<void>> outcomes;
    auto const body = [&](simulation& all) -> task<> {
        auto options = checked();
        options.check = check;
        auto const group = host::make_host_group(all.home(), 2, options);
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto const& call = r == 0 ? one : other;
            co_await put(g, *group[static_cast<std::size_t>(r)], call);
        };
        outcomes = co_await outcomes_on_ranks(all.home(), 2, 1, rank);
    };
    simulate(body);
    return outcomes;
}

} // namespace

TEST_CASE("two calls that should be the same and are not end the group, and the text names both")
{
    std::array<float, 16> memory{};
    auto const good = all_reduce(memory.data(), 1);
    auto differ = [&](std::string const& what, collective_call const& one, collective_call other,
                      std::string const& text) {
        other.where.line = 2;
        for (bool const check : {true, false}) {
            auto const outcomes = outcomes_of(one, other, check);
            for (auto const& outcome : outcomes) {
                CHECK(outcome.error() == errc::invalid_argument);
                auto const found = text_of(outcome);
                CHECK(found.starts_with(what + " differ: "));
                CHECK(found.find("rank 0's ") != std::string::npos);
                CHECK(found.find("in tp, put at here.cpp:1") != std::string::npos);
                CHECK(found.find("rank 1's " + text + " in tp, put at here.cpp:2") != std::string::npos);
            }
        }
    };
    auto other = good;
    other.count = 2;
    differ("counts", good, other, "all_reduce of 2 f32");
    other = good;
    other.parts = 3;
    differ("parts", good, other, "all_reduce of 1 f32 in 3 parts");
    auto from = to(call_of(collective_kind::broadcast, memory.data(), 4, 1), 0);
    differ("kinds", good, from, "broadcast of 4 f32 from rank 0");
    differ("roots", from, to(from, 1), "broadcast of 4 f32 from rank 1");
    other = from;
    other.element = element_kind::u8;
    differ("elements", from, other, "broadcast of 4 u8 from rank 0");
    auto const send = to(call_of(collective_kind::send, memory.data(), 4, 1), 1);
    differ("counts", send, to(call_of(collective_kind::receive, memory.data(), 5, 2), 0),
           "receive of 5 f32 from rank 0");
}

TEST_CASE("calls are compared when they are put, not when they run")
{
    auto const body = [](simulation& all) -> task<> {
        auto const group = host::make_host_group(all.home(), 2, checked());
        float memory = 0;
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto& c = *group[static_cast<std::size_t>(r)];
            if (r == 1) co_await all.home().clock().sleep_for(1s); // rank 0 has put both and waits in the first
            put(g, c, all_reduce(&memory, r == 0 ? 1 : 3));
            auto second = all_reduce(&memory, r == 0 ? 2 : 4);
            second.parts = r + 1;
            co_await put(g, c, second);
        };
        auto const outcomes = co_await outcomes_on_ranks(all.home(), 2, 1, rank);
        check_same(outcomes, errc::invalid_argument,
                   "parts differ: rank 0's all_reduce of 1 f32 in tp, put at here.cpp:2, and rank 1's all_reduce of 1 "
                   "f32 in 2 parts in tp, put at here.cpp:4");
        CHECK(all.now().time_since_epoch() == 1s);
    };
    simulate(body);
}

TEST_CASE("two groups used in two orders are a circle, which is found")
{
    auto const body = [](simulation& all) -> task<> {
        auto first = checked("a"), second = checked("b");
        first.fabric = second.fabric = host::make_host_fabric();
        auto const a = host::make_host_group(all.home(), 2, first);
        auto const b = host::make_host_group(all.home(), 2, second);
        float memory = 0;
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto const i = static_cast<std::size_t>(r);
            put(g, r == 0 ? *a[i] : *b[i], all_reduce(&memory, r == 0 ? 1 : 3));
            co_await all.home().clock().sleep_for(1s * r);
            auto const second = put(g, r == 0 ? *b[i] : *a[i], all_reduce(&memory, r == 0 ? 2 : 4));
            co_await second;
        };
        auto const outcomes = co_await outcomes_on_ranks(all.home(), 2, 1, rank);
        check_same(outcomes, errc::deadlock,
                   "collectives wait for each other: rank 1's all_reduce of 1 f32 in a, put at here.cpp:4, comes only "
                   "after rank 1's all_reduce of 1 f32 in b, put at here.cpp:3; rank 0's all_reduce of 1 f32 in b, put "
                   "at here.cpp:2, comes only after rank 0's all_reduce of 1 f32 in a, put at here.cpp:1");
        CHECK(all.now().time_since_epoch() == 1s);
    };
    simulate(body);
}

TEST_CASE("three ranks that each send before they receive are a circle, which is found")
{
    auto const body = [](simulation& all) -> task<> {
        auto const group = host::make_host_group(all.home(), 3, checked());
        float memory = 0;
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto& c = *group[static_cast<std::size_t>(r)];
            auto const line = static_cast<unsigned>(r);
            auto send = to(call_of(collective_kind::send, &memory, 1, 10 + line), (r + 1) % 3);
            put(g, c, send);
            co_await put(g, c, to(call_of(collective_kind::receive, &memory, 1, 20 + line), (r + 2) % 3));
        };
        auto const outcomes = co_await outcomes_on_ranks(all.home(), 3, 1, rank);
        for (auto const& outcome : outcomes) {
            CHECK(outcome.error() == errc::deadlock);
            for (auto const* place : {":10", ":11", ":12", ":20", ":21", ":22"})
                CHECK(text_of(outcome).find(place) != std::string::npos);
        }
    };
    simulate(body);
}

TEST_CASE("a rank that does not come ends the group after the limit, to the nanosecond, and the text says who waits")
{
    for (bool const put_it : {false, true}) {
        auto const body = [&](simulation& all) -> task<> {
            auto options = checked();
            options.hang_limit = 5s;
            auto const group = host::make_host_group(all.home(), 3, options);
            auto const other = host::make_host_group(all.home(), 1);
            float memory = 0;
            rank_body const rank = [&](test_gpu& g, int r) -> task<> {
                auto& c = *group[static_cast<std::size_t>(r)];
                for (int i = 0; i < 3; ++i) { // what goes well does not count
                    co_await all.home().clock().sleep_for(3s);
                    co_await put(g, c, all_reduce(&memory, 1));
                }
                if (r == 2) {
                    auto& lost = g.dev().stream_of(stream_role::copy_in);
                    // The stream never comes to it: it follows a rank that sends nothing.
                    if (put_it) {
                        auto& on = g.dev().stream_of(stream_role::communication);
                        on.wait(group[2]->put(lost, to(call_of(collective_kind::receive, &memory, 1, 9), 0)));
                        co_await c.put(on, all_reduce(&memory, 4));
                    }
                    co_await all.home().clock().sleep_for(1h);
                } else {
                    co_await all.home().clock().sleep_for(1s * r);
                    co_await put(g, c, all_reduce(&memory, 2 + static_cast<unsigned>(r)));
                }
            };
            auto outcomes = co_await outcomes_on_ranks(all.home(), 3, 1, rank);
            CHECK(group[0]->failure());
            if (!put_it) {
                CHECK(outcomes[2]); // it had nothing there
                outcomes.pop_back();
                check_same(
                    outcomes, errc::deadlock,
                    "a collective hangs since 5.000000 s: rank 0's all_reduce of 1 f32 in tp, put at here.cpp:2, "
                    "waits; rank 1's all_reduce of 1 f32 in tp, put at here.cpp:3, waits; rank 2 has not put it");
                CHECK(all.now().time_since_epoch() == 9s + 1h);
            } else {
                for (auto const& outcome : outcomes)
                    CHECK(outcome.error() == errc::deadlock);
                CHECK(all.now().time_since_epoch() == 9s + 5s);
            }
        };
        simulate(body);
    }
}

TEST_CASE("data travels as long as its link says, from the last arrival on, while other streams go on")
{
    auto const body = [](simulation& all) -> task<> {
        host::host_group_options options;
        options.link.latency = 10us;
        options.link.bytes_per_second = 1e9;
        CHECK(options.link.time_of(1) == 10us + 1ns);
        CHECK(host::host_link{7ns, 0}.time_of(1 << 30) == 7ns);
        CHECK(host::host_link{{}, 3}.time_of(1) == 333333334ns);
        auto const group = host::make_host_group(all.home(), 3, options);
        std::vector<float> memory(3000, 1.0f), gathered(3 * 3000);
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto& clock = all.home().clock();
            co_await clock.sleep_for(1ms * r);
            auto& c = *group[static_cast<std::size_t>(r)];
            auto call = call_of(collective_kind::all_gather, nullptr, 1000, 1);
            call.in = memory.data() + 1000 * r;
            std::vector<float> out(3000);
            call.out = out.data();
            auto const t = put(g, c, call);
            co_await t;
            CHECK(clock.now().time_since_epoch() == 2ms + 10us + 12us);
            co_await clock.sleep_for(1ms);
            co_await put(g, c, to(call_of(collective_kind::broadcast, out.data(), 1000, 2), 0));
            CHECK(clock.now().time_since_epoch() == 3ms + 22us + 10us + 4us);
        };
        co_await on_ranks(all.home(), 3, 1, rank);
    };
    simulate(body);
}

TEST_CASE("an abort ends what travels and what waits, and what is put later, with the first reason")
{
    auto const body = [](simulation& all) -> task<> {
        host::host_group_options options;
        options.link.latency = 1s;
        auto const group = host::make_host_group(all.home(), 2, options);
        std::array<float, 4> memory{};
        auto& clock = all.home().clock();
        std::vector<std::string> behind(2);
        rank_body const rank = [&](test_gpu& g, int r) -> task<> {
            auto const i = static_cast<std::size_t>(r);
            auto& c = *group[i];
            auto const t = put(g, c, all_reduce(&memory[i], 1));
            put(g, c, all_reduce(&memory[2 + i], 2));
            auto f = g.flow_on(stream_role::compute);
            f.follow(g.dev().stream_of(stream_role::communication).last());
            f.enter();
            auto last = co_await as_result(t.operator co_await());
            CHECK(text_of(last) == "first");
            CHECK(clock.now().time_since_epoch() == 500ms);
            CHECK_FALSE(t.passed());
            CHECK(t.over());
            // All of the device has failed.
            for (auto role : {stream_role::compute, stream_role::copy_in})
                CHECK(g.dev().stream_of(role).failure());
            CHECK_THROWS_WITH(put(g, c, all_reduce(&memory[i], 3)), "first");
            co_await g.dev().stream_of(stream_role::compute).last();
        };
        auto abort = [&]() -> task<> {
            co_await clock.sleep_for(500ms);
            group[1]->abort(std::make_exception_ptr(std::runtime_error("first")));
            group[0]->abort(std::make_exception_ptr(std::runtime_error("second")));
        };
        auto both = [&](scope& s) -> task<> {
            s.start(abort());
            auto const outcomes = co_await outcomes_on_ranks(all.home(), 2, 1, rank);
            for (auto const& outcome : outcomes)
                CHECK(text_of(outcome) == "first");
        };
        co_await with_scope(both);
        CHECK(all.now().time_since_epoch() == 500ms);
    };
    simulate(body);
}

CO_TEST_CASE("a communicator that goes ends what others have put and it has not")
{
    auto group = host::make_host_group(rt, 3, checked());
    std::array<float, 3> memory = {1, 2, 3};
    rank_body const body = [&](test_gpu& g, int rank) -> task<> {
        auto const i = static_cast<std::size_t>(rank);
        auto const t = put(g, *group[i], all_reduce(&memory[i], static_cast<unsigned>(rank)));
        if (rank == 2) group[2].reset(); // what it has put is done
        co_await t;
        CHECK(memory[i] == 6);
        if (rank < 2) co_await put(g, *group[i], all_reduce(&memory[i], 10 + static_cast<unsigned>(rank)));
    };
    auto const outcomes = co_await outcomes_on_ranks(rt, 3, 1, body);
    CHECK(outcomes[2]);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(outcomes[i].error() == errc::closed);
        auto const text = text_of(outcomes[i]);
        CHECK(text.find("put at here.cpp:1") != std::string::npos);
        CHECK(text.find("needs rank 2, whose communicator is gone") != std::string::npos);
    }
}

CO_TEST_CASE("a device that goes ends the group of those who wait for it")
{
    auto const group = host::make_host_group(rt, 2, checked());
    std::array<float, 2> memory{};
    auto const leaver = make_test_gpu(rt, 1), waiter = make_test_gpu(rt, 1);
    test_gpu::body const leaves = [&](test_gpu& g) -> task<> {
        put(g, *group[0], to(call_of(collective_kind::receive, &memory[0], 1, 1), 1));
        co_return;
    };
    test_gpu::body const waits = [&](test_gpu& g) -> task<> { co_await put(g, *group[1], all_reduce(&memory[1], 2)); };
    auto waiting = [&]() -> task<> {
        auto const outcome = co_await as_result(ask<&test_gpu::run>(waiter, waits));
        CHECK(outcome.error() == errc::device_lost);
        CHECK(text_of(outcome).starts_with("a host device of a group was destroyed"));
    };
    auto both = [&](scope& s) -> task<> {
        s.start(waiting());
        co_await ask<&test_gpu::run>(leaver, leaves);
        co_await stop(leaver);
    };
    co_await with_scope(both);
    co_await stop(waiter);
}

CO_TEST_CASE("a device that fails takes its groups with it, and its memory is free")
{
    auto const a = host::make_host_group(rt, 2, checked("a"));
    auto const b = host::make_host_group(rt, 2, checked("b"));
    std::array<float, 2> memory{};
    rank_body const body = [&](test_gpu& g, int rank) -> task<> {
        auto const i = static_cast<std::size_t>(rank);
        auto& device = static_cast<host::host_device&>(g.dev());
        {
            buffer used(device, 4096);
            used.used_by(put(g, *a[i], all_reduce(&memory[i], 1)));
        }
        if (rank == 0) {
            // b has only this rank's; rank 1 never puts in b and so is told by nothing but a.
            put(g, *b[0], all_reduce(&memory[0], 3));
            device.abort(std::make_exception_ptr(std::runtime_error("burnt")));
            CHECK(b[0]->failure());
        }
        auto const outcome =
            co_await as_result(g.dev().stream_of(stream_role::communication).last().operator co_await());
        CHECK((outcome || text_of(outcome) == "burnt")); // the first may be over
        CHECK(device.allocated() == 0);
        co_await put(g, *a[i], all_reduce(&memory[i], 2));
    };
    auto const outcomes = co_await outcomes_on_ranks(rt, 2, 1, body);
    for (auto const& outcome : outcomes)
        CHECK(text_of(outcome) == "burnt");
}

namespace {

struct nothing {};
void run_nothing(nothing const& /*args*/, share /*part*/) {}

} // namespace

CO_TEST_CASE("the memory of a device that has failed is its owner's at once, also when others were at work on it")
{
    constexpr std::size_t count = 300000;
    for (int i = 0; i < 20; ++i) {
        auto const group = host::make_host_group(rt, 2);
        std::vector<std::vector<float>> memory(2, std::vector<float>(count, 1.0f));
        std::atomic<bool> first_waits = false, second_comes = false;
        rank_body const body = [&](test_gpu& g, int rank) -> task<> {
            auto const at = static_cast<std::size_t>(rank);
            auto& mine = memory[at];
            auto later = g.flow_on(stream_role::copy_out);
            auto const wait_for = [&](std::atomic<bool>& what) -> task<> {
                while (!what) {
                    host::put(later, run_nothing, {});
                    co_await later; // the device has come to all that could run before it
                }
            };
            if (rank == 1) co_await wait_for(first_waits);
            second_comes = rank == 1;
            auto const t = put(g, *group[at], call_of(collective_kind::all_reduce, mine.data(), count, 1));
            if (rank == 0) {
                host::put(later, run_nothing, {});
                co_await later;
                first_waits = true;
                co_await wait_for(second_comes);
                for (int n = 0; n < 10 * i; ++n) {
                    host::put(later, run_nothing, {});
                    co_await later;
                }
                g.dev().abort(std::make_exception_ptr(std::runtime_error("burnt")));
                auto const first = mine[0];
                CHECK((first == 1.0f || first == 2.0f));
                CHECK(std::ranges::all_of(mine, [&](float v) { return v == first; }));
                mine.assign(mine.size(), 0.0f);
            }
            co_await t;
        };
        auto const outcomes = co_await outcomes_on_ranks(rt, 2, 0, body);
        CHECK(memory[0] == std::vector<float>(count, 0.0f));
        for (auto const& outcome : outcomes)
            CHECK((outcome || text_of(outcome) == "burnt"));
    }
}

CO_TEST_CASE("a limit so short that it is passed now and then ends all ranks or none")
{
    for (int i = 0; i < 30; ++i) {
        auto options = checked();
        options.hang_limit = 20us * (1 + i % 10);
        auto const group = host::make_host_group(rt, 3, options);
        std::array<float, 3> memory{};
        rank_body const body = [&](test_gpu& g, int rank) -> task<> {
            auto const at = static_cast<std::size_t>(rank);
            for (int n = 0; n < 20; ++n)
                co_await put(g, *group[at], all_reduce(&memory[at], 1));
        };
        auto const outcomes = co_await outcomes_on_ranks(rt, 3, 0, body);
        for (auto const& outcome : outcomes) {
            CHECK(static_cast<bool>(outcome) == !group[0]->failure());
            CHECK((outcome || outcome.error() == errc::deadlock));
        }
    }
}

CO_TEST_CASE("aborts race with collectives, with each other and with the end of a group, and every rank ends")
{
    for (int i = 0; i < 60; ++i) {
        host::host_group_options options = checked();
        if (i % 3 == 0) options.link.latency = 20us;
        auto group = host::make_host_group(rt, 3, options);
        std::array<float, 6> memory{};
        std::atomic<int> done = 0;
        rank_body const body = [&](test_gpu& g, int rank) -> task<> {
            auto const at = static_cast<std::size_t>(rank);
            for (int n = 0;; ++n) {
                auto const t = put(g, *group[at], all_reduce(&memory[at], 1));
                auto const second = put(g, *group[at], all_reduce(&memory[3 + at], 2));
                co_await t;
                if (n % 2 == 0) co_await second;
                ++done;
                if (i % 2 == 0 && rank == 2 && n == i / 4) {
                    group[at].reset();
                    co_return;
                }
            }
        };
        auto abort = [&](std::size_t by, char const* why) -> task<> {
            while (i % 2 != 0 && done < i)
                co_await this_task::yield();
            if (i % 2 != 0) group[by]->abort(std::make_exception_ptr(std::runtime_error(why)));
        };
        auto const one = rt.spawn_on<place>(rt.new_loop("one")), two = rt.spawn_on<place>(rt.new_loop("two"));
        std::function<task<>()> const first = [&] { return abort(0, "first"); };
        std::function<task<>()> const second = [&] { return abort(1, "second"); };
        auto all = [&](scope& s) -> task<> {
            s.start(ask<&place::run>(one, first));
            s.start(ask<&place::run>(two, second));
            auto const outcomes = co_await outcomes_on_ranks(rt, 3, 1, body);
            if (i % 2 == 0) {
                CHECK(outcomes[0].error() == errc::closed);
                CHECK(outcomes[1].error() == errc::closed);
            } else {
                auto const why = text_of(outcomes[0]);
                CHECK((why == "first" || why == "second"));
                for (auto const& outcome : outcomes)
                    CHECK(text_of(outcome) == why);
            }
        };
        co_await with_scope(all);
    }
}
