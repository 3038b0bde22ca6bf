#include <plait/tests/support/co_test.hpp>

#include <plait/actors/sync/event.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <ctime>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

using namespace plait;
using namespace std::chrono_literals;

namespace {

task<int> number(int n)
{
    co_return n;
}

struct breaks : actor {
    void now() { throw std::runtime_error("broke"); }
    task<> later()
    {
        co_await this_task::yield();
        throw std::runtime_error("broke later");
    }
    task<> wait()
    {
        event never;
        co_await never.wait();
    }
    int id() { return 7; }
};

struct noted : actor {
    explicit noted(std::vector<int>& gone, int id)
        : gone_(gone)
        , id_(id)
    {
    }
    ~noted() { gone_.push_back(id_); }
    std::thread::id thread() { return std::this_thread::get_id(); }

private:
    std::vector<int>& gone_;
    int id_;
};

struct refuses : actor {
    refuses() { throw std::runtime_error("cannot be made"); }
};

} // namespace

TEST_CASE("a runtime runs tasks on the calling thread, one after the other or nested in threads")
{
    test::frame_check frames;
    runtime rt;
    CHECK(rt.run(number(7)) == 7);
    auto where = []() -> task<std::thread::id> { co_return std::this_thread::get_id(); };
    CHECK(rt.run(where()) == std::this_thread::get_id());
    int value = 0;
    std::thread other([&] { value = rt.run(number(8)); });
    other.join();
    CHECK(value == 8);
}

TEST_CASE("run throws what the task threw")
{
    test::frame_check frames;
    runtime rt;
    auto fails = []() -> task<> {
        co_await this_task::yield();
        throw std::runtime_error("failed");
    };
    CHECK_THROWS_WITH(rt.run(fails()), "failed");
    CHECK_THROWS_AS(rt.run(task<>()), error);
}

TEST_CASE("a failure that nobody waits for reaches on_unhandled with its actor and its method")
{
    test::frame_check frames;
    std::string heard;
    unsigned line = 0;
    runtime_options options;
    options.on_unhandled = [&](failure const& f) {
        heard = std::string(f.actor) + " " + std::string(f.method) + " ";
        line = f.sent_from.line;
        try {
            std::rethrow_exception(f.exception);
        } catch (std::exception const& e) {
            heard += e.what();
        }
    };
    runtime rt(options);
    unsigned told_at = 0;
    auto body = [&]() -> task<> {
        auto r = rt.spawn<breaks>();
        told_at = here().line + 1;
        co_await tell<&breaks::now>(r);
        co_await ask<&breaks::id>(r);
    };
    rt.run(body());
    CHECK(heard.find("breaks") != heard.npos);
    CHECK(heard.find("breaks::now") != heard.npos);
    CHECK(heard.find("broke") != heard.npos);
    CHECK(line == told_at);
}

TEST_CASE("a failure that nobody handles stops what runs and is thrown by run")
{
    test::frame_check frames;
    runtime rt;
    auto body = [&]() -> task<> {
        auto r = rt.spawn<breaks>();
        co_await tell<&breaks::later>(r);
        event never;
        co_await never.wait();
    };
    CHECK_THROWS_WITH(rt.run(body()), "broke later");
    CHECK(rt.run(number(1)) == 1);
}

TEST_CASE("what an actor's constructor throws comes out of spawn")
{
    runtime rt;
    CHECK_THROWS_WITH(rt.spawn<refuses>(), "cannot be made");
    CHECK(rt.actors() == 0);
}

TEST_CASE("a runtime that goes stops its actors, youngest first, and joins their methods")
{
    test::frame_check frames;
    std::vector<int> gone;
    ref<noted> first;
    ref<noted> second;
    ref<noted> third;
    ref<breaks> waiting;
    {
        runtime rt;
        first = rt.spawn<noted>(gone, 1);
        second = rt.spawn<noted>(gone, 2);
        third = rt.spawn_on<noted>(rt.new_loop("third"), gone, 3);
        waiting = rt.spawn<breaks>();
        CHECK(try_tell<&breaks::wait>(waiting));
        CHECK(rt.actors() == 4);
    }
    CHECK(gone == std::vector{3, 2, 1});
    CHECK(third.stopped());
    CHECK(!try_tell<&noted::thread>(third));
}

TEST_CASE("a new loop has its own thread, and an actor on it runs and dies there")
{
    test::frame_check frames;
    runtime rt;
    std::vector<int> gone;
    auto body = [&]() -> task<> {
        auto a = rt.spawn_on<noted>(rt.new_loop("own"), gone, 1);
        auto b = rt.spawn<noted>(gone, 2);
        auto its = co_await ask<&noted::thread>(a);
        auto others = co_await ask<&noted::thread>(b);
        CHECK(its != others);
        CHECK(its != std::this_thread::get_id());
        co_await stop(a);
        CHECK(gone == std::vector{1});
        co_await stop(b);
    };
    rt.run(body());
}

TEST_CASE("the thread of a loop ends when the loop's last owner lets go, and its end is joined later")
{
    test::frame_check frames;
    struct at_thread_end {
        std::promise<void>* told = nullptr;
        ~at_thread_end()
        {
            if (told) told->set_value();
        }
    };
    struct watched : actor {
        void watch(std::promise<void>* told)
        {
            thread_local at_thread_end end;
            end.told = told;
        }
    };
    runtime rt;
    auto body = [&](std::promise<void>& told) -> task<> {
        auto a = rt.spawn_on<watched>(rt.new_loop("watched"));
        co_await ask<&watched::watch>(a, &told);
        co_await stop(a);
    };
    for (int i = 0; i < 3; ++i) {
        std::promise<void> told;
        rt.run(body(told));
        told.get_future().wait();
    }
}

TEST_CASE("a loop may outlive its runtime as a handle only")
{
    std::shared_ptr<event_loop> loop;
    {
        runtime rt;
        loop = rt.new_loop("kept");
    }
    loop.reset();
}

TEST_CASE("a pool of several threads keeps each actor serial")
{
    test::frame_check frames;
    struct serial : actor {
        task<> bump()
        {
            auto before = ++inside;
            most = std::max(most, before);
            --inside;
            co_await this_task::yield();
            ++count;
        }
        std::pair<int, int> seen() { return {most, count}; }
        int inside = 0;
        int most = 0;
        int count = 0;
    };
    runtime_options options;
    options.threads = 3;
    runtime rt(options);
    auto body = [&]() -> task<> {
        std::vector<ref<serial>> actors;
        for (int i = 0; i < 4; ++i) {
            actors.push_back(rt.spawn<serial>());
        }
        std::vector<task<>> all;
        for (int i = 0; i < 4000; ++i) {
            all.push_back(ask<&serial::bump>(actors[static_cast<std::size_t>(i % 4)]));
        }
        co_await when_all(std::move(all));
        for (auto& a : actors) {
            auto seen = co_await ask<&serial::seen>(a);
            CHECK(seen.first == 1);
            CHECK(seen.second == 1000);
        }
    };
    rt.run(body());
}

#if defined(__linux__)

TEST_CASE("a loop runs on the processor that it was given, under its name, and those that it starts run anywhere")
{
    test::frame_check frames;
    struct seen {
        cpu_set_t cpus{};
        int here = -1;
        std::string name;
    };
    struct looks : actor {
        std::shared_ptr<seen> look()
        {
            auto s = std::make_shared<seen>();
            pthread_getaffinity_np(pthread_self(), sizeof s->cpus, &s->cpus);
            s->here = sched_getcpu();
            std::string name(16, '\0');
            pthread_getname_np(pthread_self(), name.data(), name.size());
            s->name = name.c_str();
            return s;
        }
        ref<looks> other() { return home().spawn_on<looks>(home().new_loop("free")); }
    };
    runtime rt;
    cpu_set_t usable;
    sched_getaffinity(0, sizeof usable, &usable);
    auto body = [&]() -> task<> {
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &usable)) continue;
            loop_options options;
            options.name = "pinned-" + std::to_string(cpu) + "-of-many";
            options.cpu = cpu;
            auto pinned = rt.spawn_on<looks>(rt.new_loop(options));
            auto s = co_await ask<&looks::look>(pinned);
            CHECK(CPU_COUNT(&s->cpus) == 1);
            CHECK(CPU_ISSET(cpu, &s->cpus));
            CHECK(s->here == static_cast<int>(cpu));
            CHECK(s->name == options.name.substr(0, 15));
            auto free = co_await ask<&looks::other>(pinned);
            s = co_await ask<&looks::look>(free);
            CHECK(CPU_EQUAL(&s->cpus, &usable));
            CHECK(s->name == "free");
        }
    };
    rt.run(body());
}

TEST_CASE("a loop that spins before it parks answers, parks, and is woken again")
{
    test::frame_check frames;
    struct counts : actor {
        duration spent() // by its thread
        {
            timespec t{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
        }
    };
    runtime rt;
    loop_options options;
    options.name = "spins";
    options.spin = 1ms;
    auto loop = rt.new_loop(options);
    auto body = [&]() -> task<> {
        auto r = rt.spawn_on<counts>(loop);
        for (int i = 0; i < 1000; ++i)
            co_await ask<&counts::spent>(r);
        auto before = co_await ask<&counts::spent>(r);
        co_await rt.clock().sleep_for(400ms);
        auto after = co_await ask<&counts::spent>(r);
        CHECK(after - before < 100ms);
    };
    rt.run(body());
}

#endif

TEST_CASE("a loop on a processor that the process may not use is refused, and so is a negative spin")
{
    runtime rt;
    loop_options options;
    options.cpu = 100'000;
    std::string said;
    try {
        static_cast<void>(rt.new_loop(options));
    } catch (error const& e) {
        CHECK(e.condition() == errc::invalid_argument);
        said = e.what();
    }
    CHECK(said.find("100000") != said.npos);
    CHECK(said.find("0") != said.npos);
    options.cpu.reset();
    options.spin = -1ns;
    CHECK_THROWS_AS(static_cast<void>(rt.new_loop(options)), error);
}

TEST_CASE("an idle runtime takes no processor time")
{
    // What is measured is the process's own time, so a busy machine can't make it fail.
    runtime rt;
    auto idle = rt.new_loop("idle");
    auto body = [&]() -> task<> {
        auto r = rt.spawn<breaks>();
        co_await ask<&breaks::id>(r);
        auto before = std::clock();
        co_await rt.clock().sleep_for(300ms);
        auto spent = std::clock() - before;
        CHECK(spent < CLOCKS_PER_SEC / 20);
    };
    rt.run(body());
}

TEST_CASE("a process may use at least one processor, and seeds differ")
{
    CHECK(runtime::available_cpus() >= 1);
    runtime rt;
    auto a = rt.random_seed();
    auto b = rt.random_seed();
    auto c = rt.random_seed();
    CHECK((a != b || b != c));
}
