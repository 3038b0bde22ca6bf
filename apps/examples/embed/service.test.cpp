#include "service.hpp"

#include <doctest/doctest.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace plait::test;
using asio::ip::tcp;
using plait::engine;

namespace {

constexpr asio::experimental::as_tuple_t<asio::use_awaitable_t<>> as_tuple;
constexpr auto all_of_it = std::numeric_limits<std::size_t>::max();

/// A service on a small model, and an io_context that the test's clients share with it. At its end every client must
/// have left and everything must have been given back.
class fixture {
public:
    explicit fixture(service::options how = {}, plait::engine_options engine = {}, tiny_model_options const& shape = {})
        : model_(shape)
    {
        auto options = tiny_engine(model_.path());
        options.sequences = engine.sequences;
        running_ = home_.run(plait::open(home_, options));
        how.sampling.temperature = 1;
        how.sampling.seed = 7;
        service_ = std::make_shared<service>(context_, running_, how);
        service_->start();
    }

    /// Runs the body, then closes the service.
    void run(std::function<asio::awaitable<void>()> body)
    {
        std::exception_ptr failure;
        asio::co_spawn(context_, closing(body), [&](std::exception_ptr e) { failure = e; });
        context_.run();
        if (failure) std::rethrow_exception(failure);
        CHECK(service_.use_count() == 1); // nobody is connected and nobody is awaited
        service_.reset();
        home_.run(running_.close());
    }

    asio::awaitable<tcp::socket> connect()
    {
        tcp::socket socket(context_);
        tcp::endpoint const there(asio::ip::address_v4::loopback(), service_->port());
        co_await socket.async_connect(there, asio::use_awaitable);
        co_return socket;
    }

    asio::awaitable<plait::engine_stats> stats()
    {
        auto now = co_await plait::async_start(home_, running_.stats(), asio::use_awaitable);
        co_return now;
    }

    /// Returns when no request is left and every page is free.
    asio::awaitable<void> drained()
    {
        for (;;) {
            auto now = co_await stats();
            if (now.free_pages == now.pages && now.running == 0 && now.waiting == 0) co_return;
        }
    }

    asio::io_context& context() noexcept { return context_; }
    service& served() noexcept { return *service_; }

private:
    asio::awaitable<void> closing(std::function<asio::awaitable<void>()> body)
    {
        co_await body();
        co_await drained();
        service_->close();
    }

    frame_check frames_;
    tiny_file model_;
    asio::io_context context_;
    plait::runtime home_;
    engine running_;
    std::shared_ptr<service> service_;
};

/// Asks, reads the answer in small parts and leaves when it has read `enough` bytes. Gives what it has read.
asio::awaitable<std::string> visit(fixture& f, std::string question, std::size_t enough = all_of_it)
{
    auto socket = co_await f.connect();
    question += '\n';
    co_await asio::async_write(socket, asio::buffer(question), asio::use_awaitable);
    std::string read;
    char part[16];
    while (read.size() < enough && !read.ends_with('\n')) {
        auto [code, size] = co_await socket.async_read_some(asio::buffer(part), as_tuple);
        if (code) break;
        read.append(part, size);
    }
    co_return read;
}

/// Runs coroutines side by side and returns when all have ended.
class together {
public:
    explicit together(asio::io_context& context)
        : done_(context, std::chrono::steady_clock::time_point::max())
    {
    }
    void start(asio::awaitable<void> one)
    {
        ++left_;
        asio::co_spawn(done_.get_executor(), std::move(one), [this](std::exception_ptr e) {
            CHECK(!e);
            if (--left_ == 0) done_.cancel();
        });
    }
    asio::awaitable<void> join()
    {
        if (left_ > 0) co_await done_.async_wait(as_tuple);
    }

private:
    asio::steady_timer done_;
    int left_ = 0;
};

} // namespace

TEST_CASE("a client asks line after line and gets an answer in a line for each")
{
    fixture f;
    f.run([&]() -> asio::awaitable<void> {
        auto one = co_await visit(f, "first question");
        auto two = co_await visit(f, "second question");
        CHECK(one.ends_with('\n'));
        CHECK(one.find("\\!") == one.npos);
        CHECK(one != two);

        // Both at once on one connection: the second waits until the first is answered.
        auto socket = co_await f.connect();
        co_await asio::async_write(socket, asio::buffer(std::string("first question\nsecond question\n")),
                                   asio::use_awaitable);
        std::string read;
        auto size = co_await asio::async_read_until(socket, asio::dynamic_buffer(read), '\n', asio::use_awaitable);
        CHECK(read.substr(0, size) == one);
        read.erase(0, size);
        co_await asio::async_read_until(socket, asio::dynamic_buffer(read), '\n', asio::use_awaitable);
        CHECK(read == two);
    });
}

TEST_CASE("of 64 clients at once a third leaves early, and the others get the answers that they would get alone")
{
    std::mt19937_64 random(20240607);
    fixture f;
    f.run([&]() -> asio::awaitable<void> {
        std::vector<std::string> questions, alone, got(64);
        std::vector<std::size_t> enough(got.size(), all_of_it);
        for (std::size_t i = 0; i < got.size(); ++i) {
            questions.push_back(std::string(1 + random() % 40, static_cast<char>('a' + random() % 26)));
            auto answer = co_await visit(f, questions.back());
            alone.push_back(std::move(answer));
            if (i % 3 == 0) enough[i] = random() % alone.back().size();
        }
        auto client = [&](std::size_t i) -> asio::awaitable<void> {
            auto read = co_await visit(f, questions[i], enough[i]);
            got[i] = std::move(read);
        };
        together clients(f.context());
        for (std::size_t i = 0; i < got.size(); ++i)
            clients.start(client(i));
        co_await clients.join();
        for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(i);
            if (enough[i] == all_of_it)
                CHECK(got[i] == alone[i]);
            else
                CHECK(alone[i].starts_with(got[i]));
        }
    });
}

TEST_CASE("a client that leaves while its question waits frees what it held")
{
    plait::engine_options one_at_a_time;
    one_at_a_time.sequences = 1;
    fixture f({}, one_at_a_time);
    f.run([&]() -> asio::awaitable<void> {
        auto first = co_await f.connect();
        co_await asio::async_write(first, asio::buffer(std::string("keeps the only place\n")), asio::use_awaitable);
        for (int i = 0; i < 5; ++i)
            co_await visit(f, "does not wait for the answer", 0);
    });
}

TEST_CASE("clients that read nothing keep nobody from their answers, and find their own whole")
{
    tiny_model_options shape;
    shape.context = 8192;
    service::options how;
    how.max_tokens = 4000; // several times what the socket's buffers and the unread pieces hold
    how.sampling.logit_bias = {{tiny_end_of_text, -100.0f}, {tiny_im_end, -100.0f}};
    how.send_buffer = 2048;
    plait::engine_options few;
    few.sequences = 2;
    fixture f(how, few, shape);
    f.run([&]() -> asio::awaitable<void> {
        auto expected = co_await visit(f, "a long answer");
        // As many as there are places, so that the next one needs one of theirs.
        std::vector<tcp::socket> slow;
        for (int i = 0; i < 2; ++i) {
            slow.push_back(co_await f.connect());
            slow.back().set_option(tcp::socket::receive_buffer_size(2048));
            co_await asio::async_write(slow.back(), asio::buffer(std::string("a long answer\n")), asio::use_awaitable);
        }
        auto other = co_await visit(f, "an answer as long");
        CHECK(other.ends_with('\n'));
        auto now = co_await f.stats();
        CHECK(now.running + now.waiting == 2);
        for (auto& socket : slow) {
            std::string read;
            co_await asio::async_read_until(socket, asio::dynamic_buffer(read), '\n', asio::use_awaitable);
            CHECK(read == expected);
        }
    });
}

TEST_CASE("a question that is refused gets an error in its line, and the next one an answer")
{
    fixture f;
    f.run([&]() -> asio::awaitable<void> {
        auto expected = co_await visit(f, "short");
        auto socket = co_await f.connect();
        auto const lines = std::string(2000, 'x') + "\nshort\n"; // the model's context is 256 tokens
        co_await asio::async_write(socket, asio::buffer(lines), asio::use_awaitable);
        std::string read;
        auto size = co_await asio::async_read_until(socket, asio::dynamic_buffer(read), '\n', asio::use_awaitable);
        CHECK(read.starts_with("\\! "));
        read.erase(0, size);
        co_await asio::async_read_until(socket, asio::dynamic_buffer(read), '\n', asio::use_awaitable);
        CHECK(read == expected);
    });
}

TEST_CASE("a line without an end is refused instead of kept")
{
    service::options how;
    how.longest_line = 100;
    fixture f(how);
    f.run([&]() -> asio::awaitable<void> {
        auto answer = co_await visit(f, std::string(1000, 'x'));
        CHECK(answer.starts_with("\\! "));
    });
}

TEST_CASE("closing lets go of clients that wait, read or say nothing")
{
    fixture f;
    f.run([&]() -> asio::awaitable<void> {
        auto silent = co_await f.connect();
        auto busy = co_await f.connect();
        co_await asio::async_write(busy, asio::buffer(std::string("a question\n")), asio::use_awaitable);
        char first = 0;
        co_await asio::async_read(busy, asio::buffer(&first, 1), asio::use_awaitable);
        f.served().close();
        auto [code, size] = co_await silent.async_read_some(asio::buffer(&first, 1), as_tuple);
        CHECK(code == asio::error::eof);
        CHECK(size == 0);
    });
}
