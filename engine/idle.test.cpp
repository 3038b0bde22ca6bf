#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <sys/resource.h>

#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

using namespace plait;
using namespace plait::test;

namespace {

std::chrono::microseconds processor_time()
{
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    auto of = [](timeval t) { return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec); };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

/// The processor time that the whole process uses while this waits for a second of the runtime's clock. The least of
/// three: what the last step leaves behind, and what the system charges to whoever is there, is not in every second.
task<std::chrono::microseconds> used_in_a_second(runtime& rt)
{
    auto least = std::chrono::microseconds::max();
    for (int i = 0; i < 3 && least >= std::chrono::milliseconds(1); ++i) {
        auto before = processor_time();
        co_await rt.clock().sleep_for(std::chrono::seconds(1));
        least = std::min(least, processor_time() - before);
    }
    co_return least;
}

} // namespace

CO_TEST_CASE("an engine without requests uses next to no processor time")
{
    tiny_file model;
    std::vector<engine> engines;
    for (unsigned threads : {1u, 2u}) {
        auto options = tiny_engine(model.path());
        options.threads = threads;
        auto running = co_await open(rt, std::move(options));
        auto answer = co_await collect_from(running, ask_for("before", 20));
        CHECK(answer.tokens.size() == 20);
        co_await drained(running);
        engines.push_back(std::move(running));
    }
    auto used = co_await used_in_a_second(rt);
    CHECK(used < std::chrono::milliseconds(1));
    for (auto const& running : engines)
        co_await running.close();
}

CO_TEST_CASE("an engine that only waits for a reader uses next to no processor time")
{
    tiny_file model;
    auto options = tiny_engine(model.path());
    options.threads = 2;
    options.unread_pieces = 4;
    auto running = co_await open(rt, std::move(options));
    auto unread = co_await running.submit(ask_for("nobody reads this", 150));
    // Behind it in the queue: when it has an answer, the engine has done all that it can for the other.
    auto read = co_await collect_from(running, ask_for("somebody reads this", 150));
    CHECK(read.tokens.size() == 150);
    auto used = co_await used_in_a_second(rt);
    CHECK(used < std::chrono::milliseconds(1));
    auto rest = co_await collect(std::move(unread));
    CHECK(rest.tokens.size() == 150);
    co_await running.close();
}
