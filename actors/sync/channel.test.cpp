#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/seeds.hpp>

#include <plait/actors/simulation/simulation.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/when_any.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <vector>

using namespace plait;

namespace {

/// Runs one task on each of the loops, and ends when all have.
struct place : actor {
    task<> run(std::function<task<>()> body) { co_await body(); }
};

} // namespace

CO_TEST_CASE("a channel gives values in the order in which they were sent")
{
    channel<int> c(4);
    std::vector<int> seen;
    auto sender = [&]() -> task<> {
        for (int i = 0; i < 100; ++i) {
            co_await c.send(i);
        }
        c.close();
    };
    auto receiver = [&]() -> task<> {
        for (;;) {
            auto value = co_await c.receive();
            if (!value) break;
            seen.push_back(*value);
        }
    };
    co_await when_all(sender(), receiver());
    REQUIRE(seen.size() == 100);
    CHECK(std::is_sorted(seen.begin(), seen.end()));
}

CO_TEST_CASE("a full channel suspends its sender")
{
    channel<int> c(2);
    int sent = 0;
    auto sender = [&]() -> task<> {
        for (int i = 0; i < 5; ++i) {
            co_await c.send(i);
            ++sent;
        }
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sender);
        co_await this_task::yield();
        CHECK(sent == 2);
        CHECK(c.size() == 2);
        auto first = co_await c.receive();
        CHECK(first == 0);
        co_await this_task::yield();
        CHECK(sent == 3);
        for (int i = 1; i < 5; ++i) {
            auto next = co_await c.receive();
            CHECK(next == i);
            co_await this_task::yield();
        }
        CHECK(sent == 5);
    };
    co_await with_scope(body);
}

CO_TEST_CASE("senders that wait go on together when half of the room is free, and nobody overtakes them")
{
    channel<int> c(4);
    int sent = 0;
    auto sender = [&](int value) -> task<> {
        co_await c.send(value);
        ++sent;
    };
    auto body = [&](scope& s) -> task<> {
        for (int i = 0; i < 7; ++i)
            s.start(sender, i);
        co_await this_task::yield();
        CHECK(sent == 4);
        auto got = c.try_receive();
        CHECK(got == 0);
        co_await this_task::yield();
        CHECK(sent == 4);
        CHECK(c.size() == 3);
        CHECK(!c.try_send(-1));
        got = c.try_receive();
        CHECK(got == 1);
        CHECK(c.size() == 4);
        co_await this_task::yield();
        CHECK(sent == 6);
        for (int i = 2; i < 7; ++i) {
            got = c.try_receive();
            CHECK(got == i);
        }
        CHECK(!c.try_receive());
    };
    co_await with_scope(body);
    CHECK(sent == 7);
}

CO_TEST_CASE("closing a channel keeps what was sent")
{
    channel<int> c(8);
    co_await c.send(1);
    co_await c.send(2);
    c.close();
    auto a = co_await c.receive();
    auto b = co_await c.receive();
    auto end = co_await c.receive();
    CHECK(a == 1);
    CHECK(b == 2);
    CHECK(!end);
    CHECK(c.closed());
    CHECK(!c.try_send(3));
    bool refused = false;
    try {
        co_await c.send(3);
    } catch (error const& e) {
        refused = e.condition() == errc::closed;
    }
    CHECK(refused);
}

CO_TEST_CASE("closing a channel wakes all that wait on it")
{
    channel<int> empty(1);
    channel<int> full(0);
    int ended = 0;
    auto receiver = [&]() -> task<> {
        auto value = co_await empty.receive();
        CHECK(!value);
        ++ended;
    };
    auto sender = [&]() -> task<> {
        try {
            co_await full.send(1);
        } catch (error const& e) {
            CHECK(e.condition() == errc::closed);
            ++ended;
        }
    };
    auto body = [&](scope& s) -> task<> {
        s.start(receiver);
        s.start(receiver);
        s.start(sender);
        s.start(sender);
        co_await this_task::yield();
        CHECK(ended == 0);
        empty.close();
        full.close();
    };
    co_await with_scope(body);
    CHECK(ended == 4);
}

CO_TEST_CASE("a channel without room hands values over")
{
    channel<std::unique_ptr<int>> c(0);
    CHECK(!c.try_send(std::make_unique<int>(1)));
    auto sender = [&]() -> task<> {
        for (int i = 0; i < 10; ++i) {
            co_await c.send(std::make_unique<int>(i));
        }
    };
    auto body = [&](scope& s) -> task<> {
        s.start(sender);
        for (int i = 0; i < 10; ++i) {
            auto value = co_await c.receive();
            CHECK(**value == i);
        }
    };
    co_await with_scope(body);
}

CO_TEST_CASE("a cancelled receiver loses no value and a cancelled sender sends none")
{
    channel<int> c(1);
    auto receives = [&](scope& s) -> task<> {
        auto wait = [&]() -> task<> { static_cast<void>(co_await c.receive()); };
        s.start(wait);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(receives);
    CHECK(c.try_send(1));
    auto sends = [&](scope& s) -> task<> {
        auto wait = [&]() -> task<> { co_await c.send(2); };
        s.start(wait);
        co_await this_task::yield();
        s.request_stop();
    };
    co_await with_scope(sends);
    CHECK(c.try_receive() == 1);
    CHECK(!c.try_receive());
}

CO_TEST_CASE("a value handed over before the stop is received")
{
    channel<int> c(1);
    std::optional<int> got;
    auto body = [&](scope& s) -> task<> {
        auto wait = [&]() -> task<> { got = co_await c.receive(); };
        s.start(wait);
        co_await this_task::yield();
        CHECK(c.try_send(7));
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(got == 7);
}

CO_TEST_CASE("a stop refuses a receive that could have gone on")
{
    channel<int> c(1);
    co_await c.send(1);
    bool cancelled = false;
    auto body = [&](scope& s) -> task<> {
        s.request_stop();
        try {
            static_cast<void>(co_await c.receive());
        } catch (error const& e) {
            cancelled = e.condition() == errc::cancelled;
        }
    };
    co_await with_scope(body);
    CHECK(cancelled);
    CHECK(c.size() == 1);
}

CO_TEST_CASE("many senders and receivers on several threads lose and repeat nothing")
{
    constexpr int senders = 3;
    constexpr int receivers = 2;
    constexpr int each = 2000;
    channel<int> c(8);
    std::atomic<long> sum{0};
    std::atomic<int> received{0};
    std::atomic<int> sending{senders};
    std::vector<ref<place>> places;
    for (int i = 0; i < senders + receivers; ++i) {
        places.push_back(rt.spawn_on<place>(rt.new_loop("place " + std::to_string(i))));
    }
    std::function<task<>()> send = [&]() -> task<> {
        for (int i = 1; i <= each; ++i) {
            co_await c.send(i);
        }
        if (sending.fetch_sub(1) == 1) c.close();
    };
    std::function<task<>()> receive = [&]() -> task<> {
        for (;;) {
            auto value = co_await c.receive();
            if (!value) break;
            sum += *value;
            ++received;
        }
    };
    std::vector<task<>> all;
    for (int i = 0; i < senders + receivers; ++i) {
        all.push_back(ask<&place::run>(places[static_cast<std::size_t>(i)], i < senders ? send : receive));
    }
    co_await when_all(std::move(all));
    CHECK(received == senders * each);
    CHECK(sum == long{senders} * each * (each + 1) / 2);
}

CO_TEST_CASE("a stop that races with a send resumes the receiver once")
{
    auto one = rt.spawn_on<place>(rt.new_loop("sender"));
    auto other = rt.spawn_on<place>(rt.new_loop("receiver"));
    int received = 0;
    int cancelled = 0;
    int left = 0;
    for (int round = 0; round < 1000; ++round) {
        channel<int> c(1);
        stop_source source;
        std::function<task<>()> receive = [&]() -> task<> {
            task_context context = co_await detail::current_context();
            context.stop = source.token();
            auto wait = [&]() -> task<std::optional<int>> { co_return co_await c.receive(); };
            auto outcome = co_await detail::result_with_context(wait(), context);
            if (outcome) {
                ++received;
            } else {
                ++cancelled;
            }
        };
        std::function<task<>()> race = [&]() -> task<> {
            c.try_send(1);
            co_return;
        };
        auto waiting = ask<&place::run>(other, receive);
        auto sending = ask<&place::run>(one, race);
        auto body = [&](scope& s) -> task<> {
            s.start(std::move(waiting));
            s.start(std::move(sending));
            co_await this_task::yield();
            source.request_stop();
        };
        co_await with_scope(body);
        left += static_cast<int>(c.size());
    }
    CHECK(received + cancelled == 1000);
    CHECK(cancelled == left);
}

CO_TEST_CASE("values need not be made from nothing, and go where they are wanted only once")
{
    struct only_moved {
        explicit only_moved(int n)
            : value(std::make_unique<int>(n))
        {
        }
        std::unique_ptr<int> value;
    };
    channel<only_moved> c(3);
    auto sender = [&]() -> task<> {
        for (int i = 0; i < 20; ++i)
            co_await c.send(only_moved(i));
        c.close();
    };
    int next = 0;
    auto receiver = [&]() -> task<> {
        for (;;) {
            auto got = co_await c.receive();
            if (!got) break;
            CHECK(*got->value == next++);
        }
    };
    co_await when_all(sender(), receiver());
    CHECK(next == 20);
}

namespace {

/// Waits on two channels at once, over and over, while two senders fill them.
void selects(simulation& all)
{
    test::frame_check frames;
    constexpr int each = 6;
    struct source : actor {
        task<> fill(channel<int>* to, int from)
        {
            for (int i = 0; i < each; ++i)
                co_await to->send(from + i);
            to->close();
        }
    };
    std::vector<int> taken;
    auto body = [&]() -> task<> {
        channel<int> left(0);
        channel<int> right(2);
        bool ended[2]{};
        auto take = [&](channel<int>& from, bool& end) -> task<> {
            auto got = co_await from.receive();
            if (got) taken.push_back(*got); // here: both may have got one
            end = !got;
        };
        auto chooses = [&]() -> task<> {
            while (!ended[0] && !ended[1]) {
                auto first = co_await when_any(take(left, ended[0]), take(right, ended[1]));
                static_cast<void>(first);
            }
            while (!ended[0])
                co_await take(left, ended[0]);
            while (!ended[1])
                co_await take(right, ended[1]);
        };
        auto a = all.home().spawn<source>();
        auto b = all.home().spawn<source>();
        co_await when_all(chooses(), ask<&source::fill>(a, &left, 0), ask<&source::fill>(b, &right, 100));
    };
    all.run(body());
    for (int from : {0, 100}) {
        std::vector<int> got;
        std::ranges::copy_if(taken, std::back_inserter(got), [&](int n) { return n / 100 == from / 100; });
        if (got.size() != each) throw std::runtime_error("a value was lost");
        if (!std::ranges::is_sorted(got)) throw std::runtime_error("a channel's values changed places");
    }
}

} // namespace

TEST_CASE("who waits on several channels loses no value, whichever is first")
{
    test::check_seeds(&selects, 500);
}
