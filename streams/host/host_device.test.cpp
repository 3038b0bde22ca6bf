#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <plait/actors/error.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/test_gpu.hpp>

using namespace plait;
using namespace plait::test;

namespace {

struct append {
    std::vector<int>* to;
    int value;
};

void run_append(append const& args, share part)
{
    if (part.index == 0) args.to->push_back(args.value);
}

struct add_one {
    std::uint32_t* values;
    std::int64_t count;
};

void run_add_one(add_one const& args, share part)
{
    auto [first, last] = part.range(args.count, 16);
    for (auto i = first; i < last; ++i)
        ++args.values[i];
}

} // namespace

TEST_CASE("shares cover everything once, in whole grains")
{
    for (std::int64_t items : {0, 1, 15, 16, 17, 100, 1000})
        for (std::int64_t grain : {1, 4, 16})
            for (unsigned count : {1u, 2u, 3u, 7u, 64u}) {
                std::int64_t next = 0;
                for (unsigned index = 0; index < count; ++index) {
                    auto [first, last] = share{index, count, {}}.range(items, grain);
                    CHECK(first == next);
                    CHECK(first <= last);
                    if (first < items) CHECK(first % grain == 0);
                    next = last;
                }
                CHECK(next == items);
            }
}

CO_TEST_CASE("operations of a stream run in order and their tickets pass in order")
{
    auto body = [](test_gpu& g) -> task<> {
        std::vector<int> seen;
        auto f = g.flow_on(stream_role::compute);
        std::vector<ticket> tickets;
        for (int i = 0; i < 100; ++i) {
            host::put(f, run_append, append{&seen, i});
            tickets.push_back(f.last());
        }
        CHECK(seen.empty()); // nothing runs before the gpu's coroutines wait
        CHECK_FALSE(tickets[0].passed());
        co_await tickets[49];
        CHECK(seen.size() >= 50);
        CHECK(tickets[49].passed());
        co_await f;
        CHECK(seen.size() == 100);
        for (int i = 0; i < 100; ++i)
            CHECK(seen[static_cast<std::size_t>(i)] == i);
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("every share of every operation is done, once")
{
    for (unsigned workers : {1u, 2u, 3u, 5u}) {
        auto body = [](test_gpu& g) -> task<> {
            std::vector<std::uint32_t> values(1000, 0);
            auto f = g.flow_on(stream_role::compute);
            for (int i = 0; i < 200; ++i)
                host::put(f, run_add_one, add_one{values.data(), 1000});
            co_await f;
            for (auto v : values)
                CHECK(v == 200);
        };
        co_await on_test_gpu(rt, workers, body);
    }
}

CO_TEST_CASE("a flow that moves to another stream is followed there, and the host does not wait")
{
    auto body = [](test_gpu& g) -> task<> {
        std::vector<int> seen;
        auto f = g.flow_on(stream_role::copy_out);
        host::put(f, run_append, append{&seen, 1});
        // The urgent stream would go first; the move makes it wait.
        f.move_to(g.dev().stream_of(stream_role::urgent));
        host::put(f, run_append, append{&seen, 2});
        CHECK(seen.empty());
        co_await f;
        CHECK(seen == std::vector<int>{1, 2});
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("the more urgent stream goes first")
{
    auto body = [](test_gpu& g) -> task<> {
        std::vector<int> seen;
        auto slow = g.flow_on(stream_role::compute);
        auto fast = g.flow_on(stream_role::urgent);
        for (int i = 0; i < 3; ++i)
            host::put(slow, run_append, append{&seen, i});
        for (int i = 10; i < 13; ++i)
            host::put(fast, run_append, append{&seen, i});
        co_await slow;
        CHECK(seen == std::vector<int>{10, 11, 12, 0, 1, 2});
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("waiters resume in the order of what they wait for, not in that of their arrival")
{
    auto body = [](test_gpu& g) -> task<> {
        std::vector<int> seen, resumed;
        auto f = g.flow_on(stream_role::compute);
        std::vector<ticket> tickets;
        for (int i = 0; i < 4; ++i) {
            host::put(f, run_append, append{&seen, i});
            tickets.push_back(f.last());
        }
        auto wait = [&](int which) -> task<> {
            co_await tickets[static_cast<std::size_t>(which)];
            resumed.push_back(which);
        };
        auto all = [&](scope& s) -> task<> {
            for (int which : {3, 1, 2, 0})
                s.start(wait(which));
            co_return;
        };
        co_await with_scope(all);
        CHECK(resumed == std::vector<int>{0, 1, 2, 3});
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a buffer that an operation still uses is freed when the operation is done, not before")
{
    auto body = [](test_gpu& g) -> task<> {
        auto& device = static_cast<host::host_device&>(g.dev());
        auto f = g.flow_on(stream_role::compute);
        {
            buffer memory(device, 4096 * sizeof(std::uint32_t));
            host::put(f, run_add_one, add_one{reinterpret_cast<std::uint32_t*>(memory.data()), 4096});
            memory.used_by(f.last());
        }
        CHECK(device.allocated() > 0);
        co_await f;
        CHECK(device.allocated() == 0);
        {
            buffer unused(device, 100);
            CHECK(device.allocated() == 100);
            CHECK(unused.data()[99] == std::byte{0});
        }
        CHECK(device.allocated() == 0);
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a buffer moves, and its uses with it")
{
    auto body = [](test_gpu& g) -> task<> {
        auto& device = static_cast<host::host_device&>(g.dev());
        buffer a(device, 64), b;
        auto* at = a.data();
        b = std::move(a);
        CHECK(b.data() == at);
        CHECK_FALSE(a);
        a = buffer(device, 128);
        CHECK(device.allocated() == 192);
        b = std::move(a);
        CHECK(device.allocated() == 128);
        co_return;
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a device hands out no more than its limit")
{
    auto body = [](test_gpu& g) -> task<> {
        buffer half(g.dev(), std::size_t(40) << 20);
        CHECK_THROWS_AS(buffer(g.dev(), std::size_t(40) << 20), error);
        half = buffer();
        buffer again(g.dev(), std::size_t(40) << 20);
        CHECK(again.size() == std::size_t(40) << 20);
        co_return;
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a large block starts on a huge page")
{
    auto body = [](test_gpu& g) -> task<> {
        for (int i = 0; i < 4; ++i) {
            buffer big(g.dev(), (std::size_t(3) << 20) + 1);
            CHECK(reinterpret_cast<std::uintptr_t>(big.data()) % (std::size_t(2) << 20) == 0);
        }
        co_return;
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("operations left on a stream run before their device goes")
{
    std::vector<int> seen;
    auto body = [&seen](test_gpu& g) -> task<> {
        auto f = g.flow_on(stream_role::compute);
        for (int i = 0; i < 10; ++i)
            host::put(f, run_append, append{&seen, i});
        co_return;
    };
    co_await on_test_gpu(rt, 2, body);
    CHECK(seen.size() == 10);
}

CO_TEST_CASE("streams in any mix keep their own order and every wait")
{
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        auto body = [seed](test_gpu& g) -> task<> {
            std::mt19937 random(seed);
            constexpr stream_role roles[] = {stream_role::urgent, stream_role::compute, stream_role::communication,
                                             stream_role::copy_in, stream_role::copy_out};
            struct issued {
                int id;
                int after;
            };
            std::vector<int> seen;
            std::vector<std::vector<int>> order(std::size(roles));
            std::vector<issued> waits;
            std::vector<flow> flows;
            for (auto role : roles)
                flows.push_back(g.flow_on(role));
            std::vector<std::pair<int, ticket>> done;
            for (int id = 0; id < 60; ++id) {
                auto which = random() % std::size(roles);
                auto& f = flows[which];
                if (!done.empty() && random() % 3 == 0) {
                    auto const& [earlier, t] = done[random() % done.size()];
                    f.follow(t);
                    waits.push_back({id, earlier});
                }
                host::put(f, run_append, append{&seen, id});
                order[which].push_back(id);
                done.emplace_back(id, f.last());
            }
            for (auto const& f : flows)
                co_await f;
            CHECK(seen.size() == 60);
            auto place = [&](int id) { return std::find(seen.begin(), seen.end(), id) - seen.begin(); };
            for (auto const& list : order)
                for (std::size_t i = 1; i < list.size(); ++i)
                    CHECK(place(list[i - 1]) < place(list[i]));
            for (auto const& w : waits)
                CHECK(place(w.after) < place(w.id));
        };
        co_await on_test_gpu(rt, 1, body);
    }
}

CO_TEST_CASE("a device that fails wakes who waits, with the reason, and runs nothing of what was queued")
{
    std::vector<int> seen; // outlives the device
    auto body = [&seen](test_gpu& g) -> task<> {
        auto& device = static_cast<host::host_device&>(g.dev());
        auto f = g.flow_on(stream_role::compute);
        host::put(f, run_append, append{&seen, 1});
        auto const done = f.last();
        co_await done;
        auto on_copy = g.flow_on(stream_role::copy_in);
        buffer memory(device, 100);
        host::put(f, run_append, append{&seen, 2});
        memory.used_by(f.last());
        on_copy.follow(f.last());
        memory = buffer();
        CHECK(device.allocated() == 100);
        std::vector<std::string> heard;
        auto wait = [&](ticket t) -> task<> {
            try {
                co_await t;
            } catch (std::exception const& e) {
                heard.emplace_back(e.what());
            }
        };
        auto fail = [&]() -> task<> {
            device.abort(std::make_exception_ptr(std::runtime_error("broken")));
            device.abort(std::make_exception_ptr(std::runtime_error("again")));
            co_return;
        };
        auto all = [&](scope& s) -> task<> {
            s.start(wait(on_copy.enter().last()));
            s.start(wait(f.last()));
            s.start(fail());
            co_return;
        };
        co_await with_scope(all);
        CHECK(heard == std::vector<std::string>(2, "broken"));
        CHECK(seen == std::vector{1});
        CHECK(device.allocated() == 0);
        co_await done; // before the failure
        CHECK_FALSE(f.last().passed());
        CHECK(f.last().over());
        host::put(f, run_append, append{&seen, 3});
        on_copy.follow(f.last());
        co_await wait(f.last());
        co_await wait(on_copy.enter().last());
        CHECK(heard.size() == 4);
        memory = buffer(device, 100);
        memory.used_by(f.last());
        memory = buffer();
        CHECK(device.allocated() == 0);
    };
    co_await on_test_gpu(rt, 1, body);
    CHECK(seen == std::vector{1});
}

TEST_CASE("a compute pool needs a worker")
{
    runtime rt;
    CHECK_THROWS_AS(host::compute_pool(rt, 0), error);
}
