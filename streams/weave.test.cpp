#include <plait/streams/weave.hpp>

#include <plait/actors/error.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

/// Notes what was issued, and what ran, in order.
struct diary {
    std::vector<std::string> issued;
    std::vector<std::string> ran;
};

struct note_args {
    diary* to;
    std::array<char, 16> text;
};

void run_note(note_args const& args, share part)
{
    if (part.index == 0) args.to->ran.emplace_back(args.text.data());
}

void note(flow& f, diary& d, std::string const& text)
{
    note_args args{&d, {}};
    std::ranges::copy(text, args.text.begin());
    d.issued.push_back(text);
    host::put(f, run_note, args);
}

/// Three operations with a turn between two of them.
task<> three(flow& f, diary& d, std::string name)
{
    for (int i = 0; i < 3; ++i) {
        note(f, d, name + std::to_string(i));
        if (i < 2) co_await f.turn();
    }
}

/// The collectives of a group whose other rank has always come already: an operation on the stream, like any other.
class loud_communicator final : public communicator {
public:
    explicit loud_communicator(diary& d)
        : diary_(d)
    {
    }
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 2; }
    ticket put(stream& on, collective_call const& call) override
    {
        if (failure_) std::rethrow_exception(failure_);
        flow f(on);
        note(f, diary_, std::string(name(call.kind)).substr(0, 10));
        return f.last();
    }
    void abort(std::exception_ptr why) noexcept override
    {
        if (!failure_) failure_ = std::move(why);
    }
    std::exception_ptr failure() const noexcept override { return failure_; }

private:
    diary& diary_;
    std::exception_ptr failure_;
};

} // namespace

CO_TEST_CASE("lanes take turns at their collectives, in the order of the lanes")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        weave w(g.driven(), 3);
        co_await w.run(three(w[0], d, "a"), three(w[1], d, "b"), three(w[2], d, "c"));
        CHECK(d.issued == std::vector<std::string>{"a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"});
        CHECK(d.ran.empty()); // everything is issued before anything is done
        co_await w[2];
        CHECK(d.ran == d.issued);
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("lanes past the last fold onto it and run one after the other")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        weave one(g.driven(), 1);
        co_await one.run(three(one[0], d, "a"), three(one[1], d, "b"));
        CHECK(d.issued == std::vector<std::string>{"a0", "a1", "a2", "b0", "b1", "b2"});
        d.issued.clear();
        weave two(g.driven(), 2);
        co_await two.run(three(two[0], d, "a"), three(two[1], d, "b"), three(two[2], d, "c"));
        CHECK(d.issued == std::vector<std::string>{"a0", "b0", "a1", "b1", "a2", "b2", "c0", "c1", "c2"});
        co_await two[1];
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a set of tickets keeps the last of each stream, whichever of them are over")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        std::vector<flow> flows;
        ticket_set all;
        for (std::size_t role = 0; role < stream_roles; ++role) {
            auto& f = flows.emplace_back(g.flow_on(static_cast<stream_role>(role)));
            note(f, d, "old");
            all.add(f.last());
        }
        co_await flows.front(); // only the first stream's has passed
        for (std::size_t role = stream_roles; role-- > 0;) {
            note(flows[role], d, "new");
            all.add(flows[role].last());
        }
        for (auto t : all.tickets())
            CHECK_FALSE(t.passed());
        for (auto const& f : flows)
            co_await f;
        for (auto t : all.tickets())
            CHECK(t.passed());
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a flow that waits for the device keeps its turn")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        weave w(g.driven(), 2);
        auto waits = [](flow& f, diary& d) -> task<> {
            note(f, d, "a0");
            co_await f;
            CHECK(d.ran == std::vector<std::string>{"a0"});
            note(f, d, "a1");
            co_await f.turn();
            co_await f;
            note(f, d, "a2");
        };
        co_await w.run(waits(w[0], d), three(w[1], d, "b"));
        CHECK(d.issued == std::vector<std::string>{"a0", "a1", "b0", "a2", "b1", "b2"});
        co_await w[1];
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a collective follows its own flow only, and nobody but its flow follows it")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        loud_communicator group(d);
        weave w(g.driven(), 2, {&group, nullptr});
        float x = 0;
        auto reduces = [&x](flow& f, diary& d, std::string name) -> task<> {
            note(f, d, name + "0");
            co_await f.all_reduce(&x, &x, 1);
            note(f, d, name + "1");
        };
        co_await w.run(reduces(w[0], d, "a"), reduces(w[1], d, "b"));
        CHECK(d.issued == std::vector<std::string>{"a0", "all_reduce", "b0", "all_reduce", "a1", "b1"});
        co_await w[1];
        // The device runs what is ready, the compute stream first: b's kernel does not wait for a's collective, which
        // would have run before it had a's wait been put when the collective was issued.
        CHECK(d.ran == std::vector<std::string>{"a0", "b0", "all_reduce", "a1", "all_reduce", "b1"});
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a flow that throws ends its lane, aborts the groups, and its failure is what the weave throws")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        loud_communicator group(d);
        weave w(g.driven(), 3, {&group, nullptr});
        float x = 0;
        int after = 0;
        auto reduces = [&](flow& f) -> task<> {
            for (int i = 0; i < 3; ++i)
                co_await f.all_reduce(&x, &x, 1);
            ++after;
        };
        auto throws = [&](flow& f) -> task<> {
            co_await f.all_reduce(&x, &x, 1);
            throw error(errc::io, "a page that is gone");
        };
        auto outcome = co_await as_result(w.run(reduces(w[0]), throws(w[1]), reduces(w[2])));
        CHECK(outcome.error() == errc::io);
        CHECK(after == 0);
        CHECK(d.issued.size() == 4); // one each, then one of lane 0, and none of anybody's after the failure
        CHECK(group.failure() != nullptr);
        co_await w[0];
        co_await w[2];
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("a weave can be used again, takes no empty task, and does not run twice at once")
{
    auto body = [](test_gpu& g) -> task<> {
        diary d;
        weave w(g.driven(), 2);
        co_await w.run(three(w[0], d, "a"));
        co_await w.run();
        auto nothing = co_await as_result(w.run(three(w[0], d, "b"), task<>()));
        CHECK(nothing.error() == errc::invalid_argument);
        auto twice = [&w](flow& f, diary& d) -> task<> {
            auto inner = co_await as_result(w.run(three(f, d, "x")));
            CHECK(inner.error() == errc::invalid_argument);
        };
        co_await w.run(twice(w[0], d), three(w[1], d, "c"));
        CHECK(d.issued == std::vector<std::string>{"a0", "a1", "a2", "c0", "c1", "c2"});
        co_await w[0];
        co_await w[1];
        CHECK_THROWS_AS(weave(g.driven(), 0), error);
    };
    co_await on_test_gpu(rt, 1, body);
}

CO_TEST_CASE("the order of issue depends on what runs, not on when the device is done")
{
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        std::vector<std::string> first;
        for (bool waits : {false, true}) {
            auto body = [seed, waits, &first](test_gpu& g) -> task<> {
                diary d;
                std::mt19937 random(seed);
                weave w(g.driven(), 1 + random() % 4);
                auto any = [waits](flow& f, diary& d, std::string name, std::uint32_t seed) -> task<> {
                    std::mt19937 random(seed);
                    auto steps = random() % 12;
                    for (std::uint32_t i = 0; i < steps; ++i) {
                        note(f, d, name + std::to_string(i));
                        auto const what = random() % 3;
                        if (what == 0) co_await f.turn();
                        if (waits && what == 1) co_await f;
                    }
                };
                std::vector<task<>> all;
                for (std::size_t i = 0; i < 5; ++i)
                    all.push_back(any(w[i], d, std::string(1, static_cast<char>('a' + i)), random()));
                co_await w.run(std::move(all));
                for (std::size_t i = 0; i < w.lanes(); ++i)
                    co_await w[i];
                CHECK(d.ran.size() == d.issued.size());
                if (!waits)
                    first = d.issued;
                else
                    CHECK(d.issued == first);
            };
            co_await on_test_gpu(rt, 2, body);
        }
    }
}
