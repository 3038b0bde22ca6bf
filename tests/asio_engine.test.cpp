// The engine in somebody else's io_context: the same tokens as on threads, and no thread of plait's own.

#include <plait/actors/asio.hpp>
#include <plait/engine/async.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <asio/io_context.hpp>

#include <filesystem>
#include <functional>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

task<std::vector<collected>> answers(runtime& home, engine_options options)
{
    auto running = co_await open(home, std::move(options));
    auto out = co_await collect_together(running, some_requests(12));
    co_await drained(running);
    co_await running.close();
    co_return out;
}

#if defined(__linux__)
long threads()
{
    std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
}
#endif

void count(int* const& counter, share)
{
    ++*counter;
}

} // namespace

#if defined(__linux__)
TEST_CASE("an engine in an io_context gives the tokens that it gives on threads, and starts none")
{
    frame_check frames;
    tiny_file model;
    auto const options = tiny_engine(model.path());
    std::vector<collected> on_threads;
    {
        runtime home;
        on_threads = home.run(answers(home, options));
    }
    auto const before = threads();
    asio::io_context context;
    asio_runtime here(context);
    auto counted = [&]() -> task<std::vector<collected>> {
        auto out = co_await answers(here.home(), options);
        CHECK(threads() == before);
        co_return out;
    };
    CHECK(here.run(counted()) == on_threads);
    CHECK(threads() == before);

    // The same from a program that runs the context itself.
    bool equal = false;
    async_start(here.home(), counted(),
                [&](std::error_code code, std::vector<collected> const& out) { equal = !code && out == on_threads; });
    context.run();
    CHECK(equal);
}
#endif

TEST_CASE("an engine that decides by itself takes one thread in an io_context, and more are refused")
{
    frame_check frames;
    tiny_file model;
    asio::io_context context;
    asio_runtime here(context);
    auto options = tiny_engine(model.path());
    options.threads = 0;
    CHECK(here.run(answers(here.home(), options)).size() == 4);
    options.threads = 2;
    CHECK_THROWS_WITH_AS(here.run(answers(here.home(), options)), doctest::Contains("threads: 2"), error);
}

TEST_CASE("a gpu computes in turns with the other handlers of the io_context")
{
    frame_check frames;
    asio::io_context context;
    asio_runtime here(context);
    int operations = 0;
    int handlers = 0;
    std::function<void()> handler = [&] {
        ++handlers;
        CHECK(operations <= handlers + 1); // never two operations in a row
        if (operations < 20) asio::post(context, handler);
    };
    auto body = [&](test_gpu& g) -> task<> {
        auto f = g.flow_on(stream_role::compute);
        asio::post(context, handler);
        for (int i = 0; i < 20; ++i) {
            host::put(f, count, &operations);
        }
        co_await f.last();
    };
    here.run(on_test_gpu(here.home(), 1, body));
    CHECK(operations == 20);
    CHECK(handlers >= 19);
}
