#include <plait/tests/support/co_test.hpp>

#include <plait/actors/gone.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct counter : actor {
    int total = 0;
    int add(int n) { return total += n; }
    int value() const { return total; }
    task<int> slowly(int n)
    {
        co_await this_task::yield();
        co_return total += n;
    }
    void fails() { throw std::runtime_error("failed"); }
    task<> fails_later()
    {
        co_await this_task::yield();
        throw std::runtime_error("failed later");
    }
};

/// Its methods wait for an event that the test sets.
struct gatekeeper : actor {
    explicit gatekeeper(event& gate)
        : gate_(gate)
    {
    }

    task<int> pass(int n)
    {
        log += "(" + std::to_string(n);
        co_await gate_.wait();
        log += std::to_string(n) + ")";
        co_return n;
    }
    task<> pass_alone(int n)
    {
        auto guard = co_await this_actor::exclusive();
        log += "[" + std::to_string(n);
        co_await gate_.wait();
        auto child = [this, n]() -> task<> {
            co_await this_task::yield();
            log += std::to_string(n);
        };
        co_await child();
        log += "]";
    }
    void note(char c) { log += c; }
    std::string seen() { return log; }
    std::string log;

private:
    event& gate_;
};

bool is(std::exception_ptr const& e, char const* what)
{
    try {
        if (e) std::rethrow_exception(e);
    } catch (std::exception const& x) {
        return std::string(x.what()).find(what) != std::string::npos;
    }
    return false;
}

} // namespace

CO_TEST_CASE("an ask ends in the value or the exception of the method")
{
    auto r = rt.spawn<counter>();
    auto a = co_await ask<&counter::add>(r, 3);
    CHECK(a == 3);
    auto b = co_await ask<&counter::slowly>(r, 4);
    CHECK(b == 7);
    auto c = co_await ask<&counter::value>(r);
    CHECK(c == 7);
    auto d = co_await as_result(ask<&counter::fails>(r));
    CHECK(is(d.failure(), "failed"));
    auto e = co_await as_result(ask<&counter::fails_later>(r));
    CHECK(is(e.failure(), "failed later"));
}

CO_TEST_CASE("an ask to a stopped actor answers receiver_gone")
{
    auto r = rt.spawn<counter>();
    co_await stop(r);
    CHECK(r.stopped());
    auto outcome = co_await as_result(ask<&counter::add>(r, 1));
    CHECK(outcome.error() == errc::receiver_gone);
    bool refused = false;
    try {
        co_await tell<&counter::add>(r, 1);
    } catch (error const& e) {
        refused = e.condition() == errc::receiver_gone;
    }
    CHECK(refused);
    CHECK(!try_tell<&counter::add>(r, 1));
    co_await stop(r);
}

CO_TEST_CASE("asking an empty ref is an error")
{
    ref<counter> none;
    auto outcome = co_await as_result(ask<&counter::add>(none, 1));
    CHECK(outcome.error() == errc::invalid_argument);
}

CO_TEST_CASE("asks that wait in the mailbox of a stopped actor answer receiver_gone, running methods are cancelled")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    int cancelled = 0;
    int gone = 0;
    auto asks = [&](bool alone) -> task<> {
        try {
            if (alone) {
                co_await ask<&gatekeeper::pass_alone>(r, 1);
            } else {
                co_await ask<&gatekeeper::pass>(r, 2);
            }
        } catch (error const& e) {
            cancelled += e.condition() == errc::cancelled;
            gone += e.condition() == errc::receiver_gone;
        }
    };
    auto body = [&](scope& s) -> task<> {
        s.start(asks(false));
        s.start(asks(true));
        s.start(asks(false)); // held back by the exclusive one
        s.start(asks(false));
        while (r.depth() != 2) {
            co_await this_task::yield();
        }
        co_await stop(r);
    };
    co_await with_scope(body);
    CHECK(cancelled == 2);
    CHECK(gone == 2);
}

TEST_CASE("a told method that the actor's end cancels is no failure")
{
    test::frame_check frames;
    int failures = 0;
    runtime_options options;
    options.on_unhandled = [&](failure const&) { ++failures; };
    {
        runtime rt(options);
        event gate;
        auto body = [&]() -> task<> {
            auto r = rt.spawn<gatekeeper>(gate);
            co_await tell<&gatekeeper::pass>(r, 1);
            co_await ask<&gatekeeper::seen>(r);
            co_await stop(r);
        };
        rt.run(body());
    }
    CHECK(failures == 0);
}

CO_TEST_CASE("methods interleave at awaits and nowhere else")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    auto body = [&](scope& s) -> task<> {
        for (int i = 1; i <= 2; ++i) {
            auto asks = [&](int n) -> task<> {
                auto back = co_await ask<&gatekeeper::pass>(r, n);
                CHECK(back == n);
            };
            s.start(asks, i);
        }
        for (std::string seen; seen != "(1(2";) {
            seen = co_await ask<&gatekeeper::seen>(r);
        }
        gate.set();
    };
    co_await with_scope(body);
    auto seen = co_await ask<&gatekeeper::seen>(r);
    CHECK(seen == "(1(21)2)");
}

CO_TEST_CASE("an exclusive method is not interleaved, and what waited keeps its order")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    co_await tell<&gatekeeper::pass>(r, 1);
    co_await tell<&gatekeeper::pass_alone>(r, 2);
    co_await tell<&gatekeeper::note>(r, 'a');
    co_await tell<&gatekeeper::pass_alone>(r, 3);
    co_await tell<&gatekeeper::note>(r, 'b');
    gate.set();
    auto seen = co_await ask<&gatekeeper::seen>(r);
    while (seen.size() < 12) {
        seen = co_await ask<&gatekeeper::seen>(r);
    }
    // The first method may go on before the second begins or after it has ended, but not within.
    seen.erase(seen.find("1)"), 2);
    CHECK(seen == "(1[22]a[33]b");
}

CO_TEST_CASE("exclusive outside an actor is an error")
{
    auto body = []() -> task<> { auto guard = co_await this_actor::exclusive(); };
    auto outcome = co_await as_result(body());
    CHECK(outcome.error() == errc::invalid_argument);
}

CO_TEST_CASE("exclusive sections of one method nest")
{
    struct nests : actor {
        task<int> run()
        {
            auto outer = co_await this_actor::exclusive();
            {
                auto inner = co_await this_actor::exclusive();
                co_await this_task::yield();
            }
            co_await this_task::yield();
            outer.release();
            co_await this_task::yield();
            co_return 5;
        }
    };
    auto r = rt.spawn<nests>();
    auto five = co_await ask<&nests::run>(r);
    CHECK(five == 5);
}

CO_TEST_CASE("an ask held back by an exclusive section is cancelled at once")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    co_await tell<&gatekeeper::pass_alone>(r, 1);
    while (r.depth() != 0) {
        co_await this_task::yield();
    }
    auto body = [&](scope& s) -> task<> {
        auto asks = [&]() -> task<> { static_cast<void>(co_await ask<&gatekeeper::pass>(r, 2)); };
        s.start(asks);
        while (r.depth() != 1) {
            co_await this_task::yield();
        }
        s.request_stop();
    };
    co_await with_scope(body); // ends although the gate is shut
    CHECK(r.depth() == 0);
    gate.set();
}

CO_TEST_CASE("a cancelled ask stops its method and waits for it")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    bool cancelled = false;
    auto body = [&](scope& s) -> task<> {
        auto asks = [&]() -> task<> {
            auto outcome = co_await as_result(ask<&gatekeeper::pass>(r, 1));
            cancelled = outcome.error() == errc::cancelled;
        };
        s.start(asks);
        for (std::string seen; seen != "(1";) {
            seen = co_await ask<&gatekeeper::seen>(r);
        }
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(cancelled);
}

CO_TEST_CASE("a full mailbox suspends its sender")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    int sent = 0;
    auto body = [&](scope& s) -> task<> {
        co_await tell<&gatekeeper::pass_alone>(r, 0); // holds everything after it back
        while (r.depth() != 0) {
            co_await this_task::yield();
        }
        auto sends = [&]() -> task<> {
            for (int i = 0; i < 300; ++i) {
                co_await tell<&gatekeeper::note>(r, '.');
                ++sent;
            }
        };
        s.start(sends);
        while (r.depth() != 257) {
            co_await this_task::yield();
        }
        CHECK(sent == 256); // and one waits
        CHECK(!try_tell<&gatekeeper::note>(r, '!'));
        gate.set();
    };
    co_await with_scope(body);
    CHECK(sent == 300);
    auto seen = co_await ask<&gatekeeper::seen>(r);
    CHECK(std::count(seen.begin(), seen.end(), '.') == 300);
    CHECK(std::count(seen.begin(), seen.end(), '!') == 0);
}

CO_TEST_CASE("a sender cancelled while it waits for room has sent nothing")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    co_await tell<&gatekeeper::pass_alone>(r, 0);
    while (r.depth() != 0) {
        co_await this_task::yield();
    }
    while (try_tell<&gatekeeper::note>(r, '.')) {
    }
    bool cancelled = false;
    auto body = [&](scope& s) -> task<> {
        auto sends = [&]() -> task<> {
            try {
                co_await tell<&gatekeeper::note>(r, '!');
            } catch (error const& e) {
                cancelled = e.condition() == errc::cancelled;
            }
        };
        s.start(sends);
        while (r.depth() != 257) {
            co_await this_task::yield();
        }
        s.request_stop();
    };
    co_await with_scope(body);
    CHECK(cancelled);
    gate.set();
    auto seen = co_await ask<&gatekeeper::seen>(r);
    CHECK(std::count(seen.begin(), seen.end(), '.') == 256);
    CHECK(std::count(seen.begin(), seen.end(), '!') == 0);
}

CO_TEST_CASE("senders that wait for room at an actor that stops answer receiver_gone")
{
    event gate;
    auto r = rt.spawn<gatekeeper>(gate);
    co_await tell<&gatekeeper::pass_alone>(r, 0);
    while (r.depth() != 0) {
        co_await this_task::yield();
    }
    while (try_tell<&gatekeeper::note>(r, '.')) {
    }
    int gone = 0;
    auto body = [&](scope& s) -> task<> {
        auto sends = [&]() -> task<> {
            try {
                co_await tell<&gatekeeper::note>(r, '!');
            } catch (error const& e) {
                gone += e.condition() == errc::receiver_gone;
            }
        };
        for (int i = 0; i < 3; ++i) {
            s.start(sends);
        }
        while (r.depth() != 259) {
            co_await this_task::yield();
        }
        co_await stop(r);
    };
    co_await with_scope(body);
    CHECK(gone == 3);
}

CO_TEST_CASE("messages of one sender arrive in order, also when it had to wait for room")
{
    struct notes : actor {
        std::vector<int> seen;
        void note(int n) { seen.push_back(n); }
        std::vector<int> all() { return seen; }
    };
    auto r = rt.spawn<notes>();
    for (int i = 0; i < 5000; ++i) {
        co_await tell<&notes::note>(r, i);
    }
    auto all = co_await ask<&notes::all>(r);
    CHECK(all.size() == 5000);
    CHECK(std::is_sorted(all.begin(), all.end()));
}

namespace {

/// B of the rule "if A sends to B, then to C, and C then sends to B, B sees A first".
struct witness : actor {
    int from_a = 0;
    int late = 0;
    void hear_a() { ++from_a; }
    void hear_c(int n)
    {
        if (from_a < n) ++late;
    }
    int count_late() { return late; }
};

struct relay : actor {
    explicit relay(ref<witness> b)
        : b_(std::move(b))
    {
    }
    task<> pass(int n) { co_await tell<&witness::hear_c>(b_, n); }

private:
    ref<witness> b_;
};

} // namespace

CO_TEST_CASE("messages are delivered causally")
{
    auto b = rt.spawn_on<witness>(rt.new_loop("b"));
    auto c = rt.spawn_on<relay>(rt.new_loop("c"), b);
    for (int i = 1; i <= 3000; ++i) {
        co_await tell<&witness::hear_a>(b);
        co_await tell<&relay::pass>(c, i);
    }
    co_await stop(c);
    auto late = co_await ask<&witness::count_late>(b);
    CHECK(late == 0);
}

CO_TEST_CASE("a method resumes on its actor, and the asker on its own executor")
{
    struct places : actor {
        task<std::pair<std::thread::id, std::thread::id>> threads(runtime* rt)
        {
            auto before = std::this_thread::get_id();
            co_await rt->clock().sleep_for(1ms);
            co_return std::pair(before, std::this_thread::get_id());
        }
    };
    auto mine = std::this_thread::get_id();
    auto r = rt.spawn_on<places>(rt.new_loop("its own"));
    auto [before, after] = co_await ask<&places::threads>(r, &rt);
    CHECK(before == after);
    CHECK(before != mine);
    CHECK(std::this_thread::get_id() == mine);
}

CO_TEST_CASE("arguments are converted at the caller and live as long as the method")
{
    struct reads : actor {
        task<std::size_t> length(std::string const& text)
        {
            co_await this_task::yield();
            co_return text.size();
        }
        std::size_t size(std::unique_ptr<std::string> text) { return text->size(); }
    };
    auto r = rt.spawn<reads>();
    auto a = co_await ask<&reads::length>(r, "a text that is too long for the small string buffer");
    CHECK(a == 51);
    auto b = co_await ask<&reads::size>(r, std::make_unique<std::string>("abc"));
    CHECK(b == 3);
}

CO_TEST_CASE("an actor stops when its last handle goes, and a weak one sees it")
{
    struct dies : actor {
        explicit dies(event& gone)
            : gone_(gone)
        {
        }
        ~dies() { gone_.set(); }
        int one() { return 1; }
        ref<dies> me() { return self(*this); }

    private:
        event& gone_;
    };
    event gone;
    weak_ref<dies> weak;
    {
        auto r = rt.spawn<dies>(gone);
        weak = r;
        auto copy = weak.lock();
        CHECK(copy == r);
        auto me = co_await ask<&dies::me>(r);
        CHECK(me == r);
    }
    co_await gone.wait();
    CHECK(!weak.lock());
}

CO_TEST_CASE("a handle to a derived actor serves as one to its base")
{
    struct base : actor {
        int value() { return 4; }
    };
    struct derived : base {
        int more = 5;
    };
    ref<base> r = rt.spawn<derived>();
    auto four = co_await ask<&base::value>(r);
    CHECK(four == 4);
}

CO_TEST_CASE("an actor stops itself without waiting")
{
    struct quits : actor {
        void quit() { request_stop(self(*this)); }
    };
    auto r = rt.spawn<quits>();
    co_await ask<&quits::quit>(r);
    co_await stop(r);
    CHECK(r.stopped());
}

CO_TEST_CASE("actors that ask each other in a chain on one thread answer, however long the chain")
{
    struct link : actor {
        explicit link(ref<link> next)
            : next_(std::move(next))
        {
        }
        task<int> length()
        {
            if (!next_) co_return 1;
            auto rest = co_await ask<&link::length>(next_);
            co_return rest + 1;
        }

    private:
        ref<link> next_;
    };
    ref<link> first;
    for (int i = 0; i < 1000; ++i) {
        first = rt.spawn<link>(std::move(first));
    }
    auto length = co_await ask<&link::length>(first);
    CHECK(length == 1000);
}

CO_TEST_CASE("a million asks of an idle actor on the same thread are direct calls")
{
    struct asker : actor {
        task<long> run(ref<counter> other, int n)
        {
            long sum = 0;
            for (int i = 0; i < n; ++i) {
                sum += co_await ask<&counter::add>(other, 1);
            }
            co_return sum;
        }
    };
    auto other = rt.spawn<counter>();
    auto r = rt.spawn<asker>();
    auto sum = co_await ask<&asker::run>(r, other, 1'000'000);
    CHECK(sum == 500'000'500'000);
}

CO_TEST_CASE("a method that stops its own actor ends before the object goes, called in place or not")
{
    struct quitter : actor {
        explicit quitter(std::shared_ptr<int> alive)
            : alive_(std::move(alive))
        {
        }
        int stop_self(ref<quitter> self)
        {
            request_stop(self);
            self = {};
            return *alive_; // destroyed before, this would be a use after it
        }

    private:
        std::shared_ptr<int> alive_;
    };
    struct asker : actor {
        task<int> run(ref<quitter> other) { co_return co_await ask<&quitter::stop_self>(other, other); }
    };
    auto alive = std::make_shared<int>(7);
    auto here = rt.spawn<asker>();
    for (bool elsewhere : {false, true}) {
        auto other = elsewhere ? rt.spawn_on<quitter>(rt.new_loop("elsewhere"), alive) : rt.spawn<quitter>(alive);
        auto got = co_await ask<&asker::run>(here, other);
        CHECK(got == 7);
        co_await gone(weak_ref<quitter>(other));
        CHECK(alive.use_count() == 1);
        auto after = co_await as_result(ask<&asker::run>(here, other));
        CHECK(after.error() == errc::receiver_gone);
    }
}

TEST_CASE("no method runs on an actor of a pool that another thread has just stopped")
{
    struct victim : actor {
        ~victim() { value_ = 0; }
        int value() const { return value_; }

    private:
        int volatile value_ = 7;
    };
    struct asker : actor {
        task<int> run(ref<victim> whom)
        {
            int wrong = 0;
            for (;;) {
                auto got = co_await as_result(ask<&victim::value>(whom));
                if (!got) co_return wrong;
                if (std::move(got).value() != 7) ++wrong;
            }
        }
    };
    runtime_options options;
    options.threads = 8;
    runtime rt(options);
    auto hunt = [&]() -> task<int> {
        std::vector<ref<asker>> askers;
        askers.reserve(4);
        for (int i = 0; i < 4; ++i)
            askers.push_back(rt.spawn<asker>());
        int wrong = 0;
        for (int round = 0; round < 3000; ++round) {
            auto whom = rt.spawn<victim>();
            std::vector<task<int>> all;
            all.reserve(askers.size() + 1);
            for (auto const& one : askers)
                all.push_back(ask<&asker::run>(one, whom));
            auto end = [](ref<victim> last) -> task<int> {
                for (int i = 0; i < 20; ++i)
                    co_await this_task::yield();
                co_await stop(last);
                co_return 0;
            };
            all.push_back(end(whom));
            auto const found = co_await when_all(std::move(all));
            for (auto const each : found)
                wrong += each;
        }
        co_return wrong;
    };
    CHECK(rt.run(hunt()) == 0);
}

CO_TEST_CASE("two actors that ask each other at the same time both get their answers")
{
    struct pair : actor {
        ref<pair> other;
        void meet(ref<pair> o) { other = std::move(o); }
        void part() { other = {}; }
        int one() { return 1; }
        task<int> ask_other(int n)
        {
            int sum = 0;
            for (int i = 0; i < n; ++i) {
                sum += co_await ask<&pair::one>(other);
            }
            co_return sum;
        }
    };
    auto a = rt.spawn_on<pair>(rt.new_loop("a"));
    auto b = rt.spawn_on<pair>(rt.new_loop("b"));
    co_await ask<&pair::meet>(a, b);
    co_await ask<&pair::meet>(b, a);
    auto [x, y] =
        co_await when_all(task<int>(ask<&pair::ask_other>(a, 1000)), task<int>(ask<&pair::ask_other>(b, 1000)));
    CHECK(x == 1000);
    CHECK(y == 1000);
    co_await ask<&pair::part>(a);
    co_await ask<&pair::part>(b);
}

CO_TEST_CASE("a stop that races with an answer resumes the asker once")
{
    auto r = rt.spawn_on<counter>(rt.new_loop("other"));
    int answered = 0;
    int cancelled = 0;
    for (int round = 0; round < 2000; ++round) {
        auto body = [&](scope& s) -> task<> {
            auto asks = [&]() -> task<> {
                auto outcome = co_await as_result(ask<&counter::slowly>(r, 1));
                if (outcome) {
                    ++answered;
                } else {
                    CHECK(outcome.error() == errc::cancelled);
                    ++cancelled;
                }
            };
            s.start(asks);
            for (int i = 0; i < round % 7; ++i) {
                co_await this_task::yield();
            }
            s.request_stop();
        };
        co_await with_scope(body);
    }
    CHECK(answered + cancelled == 2000);
}

CO_TEST_CASE("an actor that stops while many ask it answers every one")
{
    for (int round = 0; round < 50; ++round) {
        auto r = rt.spawn_on<counter>(rt.pool());
        int answered = 0;
        int gone = 0;
        int cancelled = 0;
        auto body = [&](scope& s) -> task<> {
            auto asks = [&]() -> task<> {
                for (int i = 0; i < 10; ++i) {
                    auto outcome = co_await as_result(ask<&counter::slowly>(r, 1));
                    answered += outcome.has_value();
                    gone += outcome.error() == errc::receiver_gone;
                    cancelled += outcome.error() == errc::cancelled;
                }
            };
            for (int i = 0; i < 20; ++i) {
                s.start(asks);
            }
            for (int i = 0; i < round; ++i) {
                co_await this_task::yield();
            }
            co_await stop(r);
        };
        co_await with_scope(body);
        CHECK(answered + gone + cancelled == 200);
        CHECK(cancelled == 0); // a yield is not cut short
    }
}

TEST_CASE("several threads flood one actor and lose nothing")
{
    test::frame_check frames;
    runtime rt;
    auto r = rt.spawn<counter>();
    constexpr int each = 5000;
    auto sends = [&]() -> task<> {
        for (int i = 0; i < each; ++i) {
            co_await tell<&counter::add>(r, 1);
        }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] { rt.run(sends()); });
    }
    for (auto& t : threads) {
        t.join();
    }
    auto total = [&]() -> task<int> { co_return co_await ask<&counter::value>(r); };
    CHECK(rt.run(total()) == 3 * each);
}

TEST_CASE("handles come and go on many threads while the actor runs")
{
    test::frame_check frames;
    for (int round = 0; round < 200; ++round) {
        runtime rt;
        auto r = rt.spawn<counter>();
        weak_ref<counter> weak = r;
        std::vector<std::thread> threads;
        for (int t = 0; t < 2; ++t) {
            threads.emplace_back([weak] {
                for (int i = 0; i < 20; ++i) {
                    if (auto strong = weak.lock()) try_tell<&counter::add>(strong, 1);
                }
            });
        }
        r = {};
        for (auto& t : threads) {
            t.join();
        }
    }
}

namespace {

/// Holds the next of its kind, and counts those that have gone.
struct bead : actor {
    bead(ref<bead> n, int* gone)
        : next(std::move(n))
        , gone_(gone)
    {
    }
    ~bead() { ++*gone_; }
    void drop_next() { next = {}; }
    int gone_after_drop()
    {
        next = {};
        return *gone_;
    }

    ref<bead> next;

private:
    int* gone_;
};

} // namespace

CO_TEST_CASE("an actor whose last handle goes on its own executor has gone when that returns")
{
    int gone = 0;
    auto last = rt.spawn<bead>(ref<bead>(), &gone);
    auto first = rt.spawn<bead>(std::move(last), &gone);
    CHECK(co_await ask<&bead::gone_after_drop>(first) == 1);
    co_await stop(std::move(first));
    CHECK(gone == 2);
}

CO_TEST_CASE("a long string of actors that hold each other goes without a deep stack")
{
    int gone = 0;
    ref<bead> first;
    for (int i = 0; i < 100'000; ++i)
        first = rt.spawn<bead>(std::move(first), &gone);
    auto holder = rt.spawn<bead>(std::move(first), &gone);
    co_await ask<&bead::drop_next>(holder);
    co_await stop(std::move(holder));
    while (rt.actors() > 0)
        co_await this_task::yield();
    CHECK(gone == 100'001);
}

CO_TEST_CASE("an actor that lets go of itself while it runs goes when its method has ended")
{
    struct hermit : actor {
        explicit hermit(bool* gone)
            : gone_(gone)
        {
        }
        ~hermit() { *gone_ = true; }
        task<bool> forget(ref<hermit> self)
        {
            self = {};
            co_await this_task::yield();
            co_return *gone_;
        }

    private:
        bool* gone_;
    };
    bool gone = false;
    auto h = rt.spawn<hermit>(&gone);
    auto handle = h;
    CHECK_FALSE(co_await ask<&hermit::forget>(std::move(h), std::move(handle)));
    while (rt.actors() > 0)
        co_await this_task::yield();
    CHECK(gone);
}
