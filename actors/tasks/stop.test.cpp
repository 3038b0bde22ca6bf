#include <plait/actors/tasks/stop.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

using namespace plait;

TEST_CASE("a stop runs every callback once, on the thread that requests it")
{
    stop_source source;
    int calls = 0;
    auto f = [&] { ++calls; };
    stop_callback a(source.token(), f);
    {
        stop_callback gone(source.token(), f);
    }
    stop_callback b(source.token(), f);
    CHECK(!source.stop_requested());
    CHECK(source.request_stop());
    CHECK(calls == 2);
    CHECK(source.token().stop_requested());
    CHECK(!source.request_stop());
    CHECK(calls == 2);
}

TEST_CASE("a callback registered after the stop runs at once")
{
    stop_source source;
    source.request_stop();
    int calls = 0;
    stop_callback late(source.token(), [&] { ++calls; });
    CHECK(calls == 1);
}

TEST_CASE("a token of no source never stops")
{
    stop_token none;
    CHECK(!none.stop_possible());
    CHECK(!none.stop_requested());
    int calls = 0;
    stop_callback never(none, [&] { ++calls; });
    CHECK(calls == 0);
}

TEST_CASE("a callback may destroy itself and its neighbours")
{
    stop_source source;
    struct cell {
        std::optional<stop_callback<std::function<void()>>> callback;
    };
    int calls = 0;
    cell first;
    cell second;
    auto drop_both = [&] {
        ++calls;
        first.callback.reset();
        second.callback.reset();
    };
    first.callback.emplace(source.token(), std::function<void()>(drop_both));
    second.callback.emplace(source.token(), std::function<void()>(drop_both));
    source.request_stop();
    CHECK(calls == 1);
}

TEST_CASE("deregistering waits for a callback that runs on another thread")
{
    for (int round = 0; round < 2000; ++round) {
        stop_source source;
        std::atomic<bool> go{false};
        std::thread stopper([&] {
            while (!go.load()) {
            }
            source.request_stop();
        });
        int touched = 0;
        {
            auto f = [&] { ++touched; };
            std::optional<stop_callback<decltype(f)>> callback;
            callback.emplace(source.token(), f);
            go.store(true);
            callback.reset();
            // The callback has run or never will: so this plain access is not a race.
            CHECK(touched <= 1);
            touched = 0;
        }
        stopper.join();
        CHECK(touched == 0);
    }
}

TEST_CASE("callbacks come and go on many threads while a stop is requested")
{
    for (int round = 0; round < 200; ++round) {
        stop_source source;
        std::atomic<int> calls{0};
        std::atomic<int> kept{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 50; ++i) {
                    auto before = source.stop_requested();
                    int mine = 0;
                    auto f = [&] {
                        ++mine;
                        calls.fetch_add(1);
                    };
                    {
                        stop_callback callback(source.token(), f);
                    }
                    if (before) kept.fetch_add(mine == 1 ? 1 : 100);
                }
            });
        }
        threads.emplace_back([&] { source.request_stop(); });
        for (auto& t : threads) {
            t.join();
        }
        CHECK(kept.load() <= 150);
        CHECK(calls.load() >= kept.load());
    }
}
