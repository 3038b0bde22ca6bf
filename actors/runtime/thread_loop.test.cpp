#include <plait/tests/support/call_work.hpp>
#include <plait/tests/support/co_test.hpp>

#include <plait/actors/runtime/thread_loop.hpp>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace plait;
using call = test::call_work;

namespace {

/// A work with a queue of its own, as an actor is.
struct owner : work {
    explicit owner(thread_loop& on)
        : loop(on)
    {
        run = [](work& self) noexcept { static_cast<owner&>(self).turn(); };
    }
    /// From any thread; counts when the loop has to be told.
    void send(work& w)
    {
        if (!queue.push(w)) return;
        ++posts;
        loop.post(*this);
    }
    void turn() noexcept
    {
        for (;;) {
            for (auto* w = queue.take_all(); w;) {
                auto* const next = w->next_work;
                w->run(*w);
                w = next;
            }
            if (!queue.empty()) continue;
            looked_after = loop.look_after(*this, queue);
            if (looked_after || queue.try_idle()) return;
        }
    }

    thread_loop& loop;
    detail::mailbox queue;
    std::atomic<int> posts{0};
    std::atomic<bool> looked_after{false};
};

constexpr duration long_spin = std::chrono::hours(1);

} // namespace

TEST_CASE("a loop that spins finds what comes into the queue of the work that ran last, and nobody has to post that")
{
    thread_loop loop(long_spin);
    owner last(loop);
    std::atomic<int> ran{0};
    std::vector<call> items;
    items.reserve(1000);
    for (int i = 0; i < 1000; ++i)
        items.emplace_back([&] { ++ran; });
    std::thread runner([&] { loop.run(); });
    last.send(items[0]);
    while (!last.looked_after)
        std::this_thread::yield();
    for (int i = 1; i < 1000; ++i) {
        last.send(items[static_cast<std::size_t>(i)]);
        while (ran != i + 1)
            std::this_thread::yield();
    }
    CHECK(last.posts == 1);
    loop.stop();
    runner.join();
    CHECK(last.queue.is_idle()); // let go of
}

TEST_CASE("a loop looks after one work only, while nothing else is to be run, and not if it does not spin")
{
    thread_loop parks;
    owner quiet(parks);
    call nothing([] {});
    quiet.send(nothing);
    parks.stop();
    parks.run();
    CHECK_FALSE(quiet.looked_after);
    CHECK(quiet.queue.is_idle());

    thread_loop loop(long_spin);
    owner first(loop);
    owner second(loop);
    bool let_go = false;
    call to_first([] {});
    call to_second([&] { let_go = first.queue.is_idle(); });
    first.send(to_first);
    second.send(to_second);
    loop.stop();
    loop.run();
    CHECK_FALSE(first.looked_after);
    CHECK_FALSE(second.looked_after); // the stop follows

    std::thread runner([&] { loop.run(); });
    first.send(to_first);
    while (!first.looked_after)
        std::this_thread::yield();
    second.send(to_second);
    while (!second.looked_after)
        std::this_thread::yield();
    loop.stop();
    runner.join();
    CHECK(let_go);
    CHECK(first.posts == 2);
    CHECK(first.queue.is_idle());
    CHECK(second.queue.is_idle());
}

TEST_CASE("what comes to a loop's last work just when it stops to look is run all the same")
{
    // A short spin: the looking ends while others send.
    thread_loop loop(duration(2000));
    owner last(loop);
    std::atomic<int> ran{0};
    call item([&] { ++ran; });
    std::thread runner([&] { loop.run(); });
    for (int i = 0; i < 20'000; ++i) {
        last.send(item);
        while (ran != i + 1)
            std::this_thread::yield();
    }
    loop.stop();
    runner.join();
    CHECK(last.queue.is_idle());
}

TEST_CASE("a poller that sends to the work that is looked after has it run")
{
    struct device : thread_loop::poller {
        owner* to = nullptr;
        call* item = nullptr;
        std::atomic<int> left{0};
        bool poll() override
        {
            if (left == 0) return false;
            --left;
            to->send(*item);
            return true;
        }
    };
    thread_loop loop(long_spin);
    owner last(loop);
    device d;
    std::atomic<int> ran{0};
    call item([&] { ++ran; });
    d.to = &last;
    d.item = &item;
    loop.attach(d);
    std::thread runner([&] { loop.run(); });
    std::atomic<int> nudged{0};
    call nudge([&] { ++nudged; });
    for (int i = 0; i < 100; ++i) {
        d.left = 1;
        loop.post(nudge);
        while (ran != i + 1 || nudged != i + 1) // the poller may have been asked before the nudge was there
            std::this_thread::yield();
    }
    loop.stop();
    runner.join();
    loop.detach(d);
}

TEST_CASE("a loop runs works in the order in which they were posted, and those that they post")
{
    thread_loop loop;
    std::vector<int> ran;
    call third([&] {
        ran.push_back(3);
        loop.stop();
    });
    call first([&] {
        ran.push_back(1);
        loop.post(third);
    });
    call second([&] { ran.push_back(2); });
    loop.post(first);
    loop.post(second);
    loop.run();
    CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE("what a loop posts to itself comes after what others have posted before, and before what they post after")
{
    thread_loop loop;
    std::vector<int> ran;
    auto note = [&](int n) { return [&ran, n] { ran.push_back(n); }; };
    call own_first(note(1));
    call other(note(2));
    call own_second(note(3));
    call last([&] { loop.stop(); });
    call first([&] {
        loop.post(own_first);
        std::thread([&] { loop.post(other); }).join();
        loop.post(own_second);
        loop.post(last);
    });
    loop.post(first);
    loop.run();
    CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE("works that are posted together stay together, in their order")
{
    thread_loop loop;
    std::vector<int> ran;
    call before([&] { ran.push_back(0); });
    call one([&] { ran.push_back(1); });
    call two([&] { ran.push_back(2); });
    call three([&] {
        ran.push_back(3);
        loop.stop();
    });
    detail::work_list all;
    loop.post_all(all); // of none: nobody is woken
    for (auto* w : {&one, &two, &three})
        all.push_back(*w);
    loop.post(before);
    loop.post_all(all);
    CHECK(all.empty());
    loop.run();
    CHECK(ran == std::vector{0, 1, 2, 3});
    // They wake a loop that is parked.
    std::thread runner([&] { loop.run(); });
    for (auto* w : {&one, &two, &three})
        all.push_back(*w);
    loop.post_all(all);
    runner.join();
    CHECK(ran == std::vector{0, 1, 2, 3, 1, 2, 3});
}

TEST_CASE("a loop that was stopped runs what is queued, and can run again")
{
    thread_loop loop;
    int ran = 0;
    call work_item([&] { ++ran; });
    loop.stop();
    loop.stop();
    loop.post(work_item);
    loop.run();
    CHECK(ran == 1);
    loop.post(work_item);
    loop.stop();
    loop.run();
    CHECK(ran == 2);
}

TEST_CASE("a parked loop is woken by every post")
{
    thread_loop loop;
    std::atomic<int> ran{0};
    std::thread runner([&] { loop.run(); });
    call item([&] { ++ran; });
    for (int i = 0; i < 5000; ++i) {
        loop.post(item);
        while (ran.load() != i + 1) {
            std::this_thread::yield();
        }
    }
    loop.stop();
    runner.join();
    CHECK(ran == 5000);
}

TEST_CASE("a poller runs while it has something to do, also beside works that never end")
{
    struct device : thread_loop::poller {
        int left = 5;
        thread_loop* loop = nullptr;
        bool poll() override
        {
            if (left == 0) return false;
            if (--left == 0) loop->stop();
            return true;
        }
    };
    thread_loop loop;
    device d;
    d.loop = &loop;
    loop.attach(d);
    loop.run();
    CHECK(d.left == 0);

    d.left = 3;
    bool stopped = false;
    call endless([&] {
        if (d.left > 0) {
            loop.post(endless);
        } else {
            stopped = true;
        }
    });
    loop.post(endless);
    loop.run();
    CHECK(stopped);
    loop.detach(d);
}

TEST_CASE("a poller that sleeps is asked again after a post")
{
    struct device : thread_loop::poller {
        std::atomic<int> queued{0};
        int done = 0;
        bool poll() override
        {
            if (queued.load() == done) return false;
            ++done;
            return true;
        }
    };
    thread_loop loop;
    device d;
    loop.attach(d);
    std::thread runner([&] { loop.run(); });
    call nudge([] {});
    std::atomic<bool> ran{false};
    call last([&] { ran = true; });
    d.queued = 1;
    loop.post(nudge);
    d.queued = 2;
    loop.post(last);
    while (!ran) {
        std::this_thread::yield();
    }
    loop.stop();
    runner.join();
    CHECK(d.done == 2);
}

TEST_CASE("whoever has woken a loop touches nothing of it when it has ended")
{
    // The loop goes as soon as its last work has run, while the thread that woke it may still be in its post.
    struct ends : work {
        thread_loop* loop = nullptr;
    };
    for (auto spin : {duration::zero(), duration(2000)}) {
        std::atomic<thread_loop*> current{nullptr};
        std::atomic<bool> over{false};
        std::thread waker([&] {
            ends last;
            last.run = [](work& self) noexcept { static_cast<ends&>(self).loop->stop(); };
            while (!over) {
                auto* loop = current.load();
                if (!loop) {
                    std::this_thread::yield();
                    continue;
                }
                last.loop = loop;
                current = nullptr;
                loop->post(last);
            }
        });
        for (int round = 0; round < 3000; ++round) {
            auto loop = std::make_unique<thread_loop>(spin);
            current = loop.get();
            loop->run();
            loop.reset();
        }
        over = true;
        waker.join();
        CHECK(current.load() == nullptr);
    }
}
