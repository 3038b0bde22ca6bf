#include <plait/tests/support/co_test.hpp>

#include <plait/actors/runtime/thread_loop.hpp>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace plait;

namespace {

struct call : work {
    explicit call(std::function<void()> f)
        : f_(std::move(f))
    {
        run = [](work& self) noexcept { static_cast<call&>(self).f_(); };
    }

private:
    std::function<void()> f_;
};

} // namespace

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
