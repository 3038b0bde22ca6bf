#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <plait/actors/asio/asio_runtime.hpp>
#include <plait/actors/error.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/test_group.hpp>

using namespace plait;
using namespace plait::test;

namespace {

using floats = std::vector<float>;

/// Values of many magnitudes, so that a sum in another order has other bits.
floats random_floats(std::size_t count, std::uint32_t seed)
{
    std::mt19937 random(seed);
    floats out(count);
    for (auto& v : out)
        v = std::ldexp(static_cast<float>(random() % 20001) / 10000.0f - 1.0f, static_cast<int>(random() % 24));
    return out;
}

bool same_bits(floats const& a, floats const& b)
{
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Element `i` of the sum of all summands, in order.
floats plain_sum(std::vector<floats> const& inputs, std::size_t count, std::size_t parts)
{
    floats out(count);
    for (std::size_t i = 0; i < count; ++i) {
        float total = inputs[0][i];
        for (std::size_t rank = 0; rank < inputs.size(); ++rank)
            for (std::size_t part = rank == 0 ? 1 : 0; part < parts; ++part)
                total += inputs[rank][part * count + i];
        out[i] = total;
    }
    return out;
}

collective_call call_of(collective_kind kind, void const* in, void* out, std::int64_t count, site where = here())
{
    collective_call call;
    call.kind = kind;
    call.in = in;
    call.out = out;
    call.count = count;
    call.where = where;
    return call;
}

/// Puts a call on the communication stream.
ticket put(test_gpu& g, communicator& c, collective_call const& call)
{
    return c.put(g.flow_on(stream_role::communication).enter(), call);
}

} // namespace

CO_TEST_CASE("a sum of all ranks has the bits of a plain loop in rank order, whatever the size, in place or not")
{
    for (int ranks = 1; ranks <= 8; ++ranks)
        for (std::size_t count : {0, 1, 3, 1000, 100000}) {
            auto const parts = count == 100000 ? 1 : 1 + (static_cast<std::size_t>(ranks) + count) % 4;
            std::vector<floats> inputs;
            for (int rank = 0; rank < ranks; ++rank)
                inputs.push_back(random_floats(count * parts, static_cast<std::uint32_t>(rank + 1)));
            auto const expected = plain_sum(inputs, count, parts);
            auto const group = host::make_host_group(rt, ranks);
            rank_body const body = [&](test_gpu& g, int rank) -> task<> {
                auto& c = *group[static_cast<std::size_t>(rank)];
                auto const& in = inputs[static_cast<std::size_t>(rank)];
                floats out(count), in_place = in;
                auto call = call_of(collective_kind::all_reduce, in.data(), out.data(), std::ssize(out));
                call.parts = static_cast<int>(parts);
                put(g, c, call);
                call.in = call.out = in_place.data();
                co_await put(g, c, call);
                in_place.resize(count);
                CHECK(same_bits(out, expected));
                CHECK(same_bits(in_place, expected));
            };
            co_await on_ranks(rt, ranks, 1 + static_cast<unsigned>(ranks) % 2, body);
        }
}

CO_TEST_CASE("several summands of each rank are added as if each were a rank's")
{
    for (std::size_t parts = 1; parts <= 4; ++parts) {
        constexpr std::size_t count = 5000;
        std::vector<floats> single, inputs(2);
        for (std::size_t i = 0; i < 2 * parts; ++i) {
            single.push_back(random_floats(count, static_cast<std::uint32_t>(i + 1)));
            auto& owner = inputs[i / parts];
            owner.insert(owner.end(), single.back().begin(), single.back().end());
        }
        auto const expected = plain_sum(single, count, 1);
        auto const group = host::make_host_group(rt, 2);
        rank_body const body = [&](test_gpu& g, int rank) -> task<> {
            auto const r = static_cast<std::size_t>(rank);
            floats out(count);
            auto call = call_of(collective_kind::all_reduce, inputs[r].data(), out.data(), count);
            call.parts = static_cast<int>(parts);
            co_await put(g, *group[r], call);
            CHECK(same_bits(out, expected));
        };
        co_await on_ranks(rt, 2, 2, body);
    }
}

CO_TEST_CASE("a gather puts every rank's piece in its place, and a scattered sum gives each rank its own")
{
    for (int ranks = 1; ranks <= 8; ++ranks)
        for (std::size_t count : {0, 1, 3, 63, 64, 1000, 5000}) {
            auto const all = static_cast<std::size_t>(ranks) * count;
            std::size_t const parts = 1 + count % 3;
            std::vector<floats> inputs;
            floats gathered;
            for (int rank = 0; rank < ranks; ++rank) {
                inputs.push_back(random_floats(all * parts, static_cast<std::uint32_t>(rank + 1)));
                gathered.insert(gathered.end(), inputs.back().begin(),
                                inputs.back().begin() + static_cast<std::ptrdiff_t>(count));
            }
            auto const sum = plain_sum(inputs, all, parts);
            auto const group = host::make_host_group(rt, ranks);
            rank_body const body = [&](test_gpu& g, int rank) -> task<> {
                auto const r = static_cast<std::size_t>(rank);
                floats whole(all), piece(count);
                auto const n = static_cast<std::int64_t>(count);
                put(g, *group[r], call_of(collective_kind::all_gather, inputs[r].data(), whole.data(), n));
                auto scatter = call_of(collective_kind::reduce_scatter, inputs[r].data(), piece.data(), n);
                scatter.parts = static_cast<int>(parts);
                co_await put(g, *group[r], scatter);
                auto const begin = sum.begin() + static_cast<std::ptrdiff_t>(r * count);
                CHECK(same_bits(whole, gathered));
                CHECK(same_bits(piece, floats(begin, begin + static_cast<std::ptrdiff_t>(count))));
            };
            co_await on_ranks(rt, ranks, 2, body);
        }
}

CO_TEST_CASE("what every rank has for every other arrives in the order of the ranks")
{
    for (int ranks = 1; ranks <= 8; ++ranks)
        for (std::size_t count : {0, 1, 63, 64, 1000}) {
            auto const all = static_cast<std::size_t>(ranks) * count;
            std::vector<floats> inputs;
            for (int rank = 0; rank < ranks; ++rank)
                inputs.push_back(random_floats(all, static_cast<std::uint32_t>(rank + 1)));
            auto const group = host::make_host_group(rt, ranks);
            rank_body const body = [&](test_gpu& g, int rank) -> task<> {
                auto const r = static_cast<std::size_t>(rank);
                floats out(all), expected;
                for (auto const& input : inputs) {
                    auto const from = input.begin() + static_cast<std::ptrdiff_t>(r * count);
                    expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(count));
                }
                co_await put(g, *group[r],
                             call_of(collective_kind::all_to_all, inputs[r].data(), out.data(),
                                     static_cast<std::int64_t>(count)));
                CHECK(same_bits(out, expected));
            };
            co_await on_ranks(rt, ranks, 2, body);
        }
}

CO_TEST_CASE("a broadcast gives all ranks what the root has, of any element")
{
    for (auto element : {element_kind::f32, element_kind::i32, element_kind::u8})
        for (int root = 0; root < 3; ++root) {
            std::vector<std::uint8_t> from(static_cast<std::size_t>(777 * bytes_of(element)));
            for (std::size_t i = 0; i < from.size(); ++i)
                from[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(root));
            auto const group = host::make_host_group(rt, 3);
            rank_body const body = [&](test_gpu& g, int rank) -> task<> {
                std::vector<std::uint8_t> out(from.size());
                auto call = call_of(collective_kind::broadcast, rank == root ? from.data() : nullptr, out.data(), 777);
                call.element = element;
                call.peer = root;
                co_await put(g, *group[static_cast<std::size_t>(rank)], call);
                CHECK(out == from);
            };
            co_await on_ranks(rt, 3, 1, body);
        }
}

CO_TEST_CASE("what one rank sends another receives, the first first, and others do not take part")
{
    auto const group = host::make_host_group(rt, 3);
    rank_body const body = [&](test_gpu& g, int rank) -> task<> {
        auto& c = *group[static_cast<std::size_t>(rank)];
        std::array<std::int32_t, 2> sent = {rank * 10 + 1, rank * 10 + 2};
        std::array<std::int32_t, 2> received{};
        auto call = call_of(collective_kind::send, &sent[0], nullptr, 1);
        call.element = element_kind::i32;
        auto const send = [&](std::size_t which, int to) {
            call.kind = collective_kind::send;
            call.in = &sent[which];
            call.out = nullptr;
            call.peer = to;
            put(g, c, call);
        };
        auto const receive = [&](std::size_t which, int from) {
            call.kind = collective_kind::receive;
            call.in = nullptr;
            call.out = &received[which];
            call.peer = from;
            put(g, c, call);
        };
        if (rank == 0) {
            send(0, 1);
            send(1, 1);
            receive(0, 2);
        } else if (rank == 1) {
            receive(0, 0);
            receive(1, 0);
            send(0, 2);
        } else {
            receive(0, 1);
            send(0, 0);
        }
        co_await g.flow_on(stream_role::communication);
        if (rank == 0) CHECK(received == std::array{21, 0});
        if (rank == 1) CHECK(received == std::array{1, 2});
        if (rank == 2) CHECK(received == std::array{11, 0});
    };
    co_await on_ranks(rt, 3, 1, body);
}

namespace {

struct fill {
    float* to;
    float value;
};

void run_fill(fill const& args, share part)
{
    if (part.index == 0) *args.to = args.value;
}

} // namespace

CO_TEST_CASE("a collective reads what was put on its stream before it, and is done before what is put after it")
{
    auto const group = host::make_host_group(rt, 4);
    rank_body const body = [&](test_gpu& g, int rank) -> task<> {
        float value = 0, sum = 0, copy = 0;
        auto f = g.flow_on(stream_role::compute);
        for (int step = 0; step < 50; ++step) {
            host::put(f, run_fill, fill{&value, static_cast<float>(rank + step)});
            f.move_to(g.dev().stream_of(stream_role::communication));
            f.issued(group[static_cast<std::size_t>(rank)]->put(f.enter(),
                                                                call_of(collective_kind::all_reduce, &value, &sum, 1)));
            f.move_to(g.dev().stream_of(stream_role::compute));
            if (step % 10 != 9) continue;
            co_await f;
            copy = sum;
            CHECK(copy == static_cast<float>(6 + 4 * step));
        }
    };
    co_await on_ranks(rt, 4, 2, body);
}

CO_TEST_CASE("a collective begins before operations that are ready, of whatever role")
{
    auto group = host::make_host_group(rt, 1);
    std::array<float, 2> summands{1, 2};
    float sum = 0, seen = 0;
    struct look {
        float const* at;
        float* seen;
    };
    auto body = [&](test_gpu& g, int) -> task<> {
        auto& compute = static_cast<host::host_stream&>(g.driven().stream_of(stream_role::compute));
        auto& communication = g.driven().stream_of(stream_role::communication);
        auto run_look = [](look const& args, share) { *args.seen = *args.at; };
        communication.wait(compute.put({}, +run_look, look{summands.data(), &seen}));
        auto call = call_of(collective_kind::all_reduce, summands.data(), &sum, 1);
        call.parts = 2;
        auto const summed = group[0]->put(communication, call);
        compute.put({}, +run_look, look{&sum, &seen});
        co_await compute.last();
        co_await summed;
        CHECK(seen == 3);
    };
    co_await on_ranks(rt, 1, 1, body);
}

TEST_CASE("eight ranks run on one thread")
{
    frame_check frames;
    {
        simulation all;
        auto& rt = all.home();
        auto const body = [](runtime& rt) -> task<> {
            auto const group = host::make_host_group(rt, 8);
            rank_body const rank = [&](test_gpu& g, int r) -> task<> {
                float value = static_cast<float>(r);
                for (int i = 0; i < 20; ++i)
                    co_await put(g, *group[static_cast<std::size_t>(r)],
                                 call_of(collective_kind::all_reduce, &value, &value, 1));
                CHECK(value == std::ldexp(28.0f, 3 * 19));
            };
            co_await on_ranks(rt, 8, 1, rank);
        };
        all.run(body(rt));
    }
}

TEST_CASE("ranks run in an Asio context, on one thread of it or on two")
{
    frame_check frames;
    for (unsigned threads : {1u, 2u}) {
        asio::io_context context;
        {
            asio_runtime rt(context);
            std::vector<std::thread> others;
            auto busy = asio::make_work_guard(context);
            for (unsigned i = 1; i < threads; ++i)
                others.emplace_back([&] { context.run(); });
            auto const body = [](runtime& rt) -> task<> {
                host::host_group_options options;
                options.link.latency = std::chrono::microseconds(10);
                auto const group = host::make_host_group(rt, 4, options);
                rank_body const rank = [&](test_gpu& g, int r) -> task<> {
                    float value = static_cast<float>(r);
                    for (int i = 0; i < 20; ++i)
                        co_await put(g, *group[static_cast<std::size_t>(r)],
                                     call_of(collective_kind::all_reduce, &value, &value, 1));
                    CHECK(value == std::ldexp(6.0f, 2 * 19));
                };
                co_await on_ranks(rt, 4, 1, rank);
            };
            rt.run(body(rt.home()));
            busy.reset();
            for (auto& t : others)
                t.join();
        }
    }
}

CO_TEST_CASE("a call that makes no sense is refused, and the group goes on")
{
    auto const group = host::make_host_group(rt, 2);
    CHECK_THROWS_AS(host::make_host_group(rt, 0), error);
    rank_body const body = [&](test_gpu& g, int rank) -> task<> {
        auto& c = *group[static_cast<std::size_t>(rank)];
        auto& on = g.dev().stream_of(stream_role::communication);
        float value = 1;
        auto const good = call_of(collective_kind::all_reduce, &value, &value, 1);
        CHECK_THROWS_AS(c.put(on, good), error); // no flow was taken
        g.flow_on(stream_role::compute);
        auto const refused = [&](auto change) {
            auto call = good;
            change(call);
            CHECK_THROWS_AS(c.put(on, call), error);
        };
        using enum collective_kind;
        refused([](auto& call) { call.count = -1; });
        refused([](auto& call) { call.parts = 0; });
        refused([](auto& call) { call.element = element_kind::i32; });
        refused([](auto& call) { call.in = nullptr; });
        refused([](auto& call) { call.out = nullptr; });
        refused([](auto& call) { call.kind = all_gather; });
        refused([](auto& call) { call.kind = all_to_all; });
        refused([&](auto& call) { call.kind = send, call.peer = rank; });
        refused([](auto& call) { call.kind = receive, call.peer = 2; });
        refused([](auto& call) { call.kind = broadcast, call.peer = -1; });
        co_await c.put(on, good);
        CHECK(value == 2);
    };
    co_await on_ranks(rt, 2, 1, body);
}
