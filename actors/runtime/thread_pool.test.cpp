#include <plait/tests/support/call_work.hpp>

#include <plait/actors/runtime/thread_pool.hpp>

#include <plait/actors/runtime/machine_atomics.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <latch>
#include <optional>
#include <set>
#include <thread>
#include <utility>

using namespace plait;
using call = test::call_work;

namespace {

void wait_for(std::atomic<bool> const& flag)
{
    while (!flag.load(std::memory_order_acquire))
        detail::machine_atomics::yield();
}

} // namespace

TEST_CASE("what a work has posted runs on another thread when the work keeps its own")
{
    detail::thread_pool pool(2, "pool", nullptr);
    std::latch end(1);
    std::atomic<bool> ran = false;
    call second([&] { ran.store(true, std::memory_order_release); });
    call first([&] {
        pool.post(second);
        wait_for(ran);
        end.count_down();
    });
    pool.post(first);
    end.wait();
}

TEST_CASE("also after the others have napped, because it posted works for a long time and came to all of them")
{
    detail::thread_pool pool(3, "pool", nullptr);
    constexpr int turns = 20'000;
    std::latch end(1);
    std::atomic<bool> ran = false;
    int turn = 0;
    std::optional<call> again;
    call last([&] { ran.store(true, std::memory_order_release); });
    again.emplace([&] {
        if (++turn < turns) {
            pool.post(*again);
            return;
        }
        pool.post(last);
        wait_for(ran);
        end.count_down();
    });
    pool.post(*again);
    end.wait();
    CHECK(turn == turns);
}

TEST_CASE("works that wait for each other get a thread each, posted from within or from elsewhere")
{
    constexpr int threads = 4;
    detail::thread_pool pool(threads, "pool", nullptr);
    for (bool const within : {false, true}) {
        CAPTURE(within);
        std::latch meeting(threads);
        std::latch end(threads);
        std::array<std::thread::id, threads> ran_on;
        auto meet = [&](int i) {
            return call([&, i] {
                ran_on[static_cast<std::size_t>(i)] = std::this_thread::get_id();
                meeting.arrive_and_wait();
                end.count_down();
            });
        };
        std::array<call, threads> all{meet(0), meet(1), meet(2), meet(3)};
        call post_all([&] {
            for (auto& one : all)
                pool.post(one);
        });
        if (within) {
            pool.post(post_all);
        } else {
            post_all.what();
        }
        end.wait();
        CHECK(std::set<std::thread::id>(ran_on.begin(), ran_on.end()).size() == threads);
    }
}

TEST_CASE("a pool that ends runs what is queued")
{
    std::atomic<int> ran = 0;
    std::optional<detail::thread_pool> pool(std::in_place, 2U, "pool", nullptr);
    call inner([&] { ++ran; });
    call outer([&] {
        ++ran;
        pool->post(inner);
    });
    pool->post(outer);
    pool.reset();
    CHECK(ran == 2);
}
