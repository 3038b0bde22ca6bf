#include <plait/apps/bench/runtime/peers/asio/asio.hpp>

#include <plait/apps/bench/runtime/peers/asio/rethrow.hpp>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <deque>

namespace plait::bench::with_asio {

namespace {

using asio::awaitable;
using asio::use_awaitable;
using channel = asio::experimental::channel<void(asio::error_code, std::int64_t)>;

struct waiter {
    explicit waiter(asio::io_context& context)
        : values(context, 1)
    {
    }
    channel values;
    asio::cancellation_signal signal;
};

awaitable<void> wait_for_result(channel& never, std::int64_t& ended)
{
    auto const [failure, value] = co_await never.async_receive(asio::experimental::as_tuple(use_awaitable));
    if (failure) ++ended;
}

awaitable<void> wait_and_throw(channel& never, std::int64_t& ended)
{
    struct at_end {
        ~at_end() { ++count; }
        std::int64_t& count;
    } const counts{ended};
    co_await never.async_receive(use_awaitable);
    ended = -1; // it must not come here
}

template<class Wait>
sample cancel(std::int64_t n, Wait wait)
{
    asio::io_context context(1);
    std::deque<waiter> all;
    std::int64_t ended = 0;
    meter m;
    for (std::int64_t i = 0; i < n; ++i) {
        auto& one = all.emplace_back(context);
        auto const ignore = [](std::exception_ptr const&) {}; // counted where it is thrown
        asio::co_spawn(context, wait(one.values, ended), asio::bind_cancellation_slot(one.signal.slot(), ignore));
    }
    asio::post(context, [&] { // by now they wait
        m = meter();
        for (auto& one : all)
            one.signal.emit(asio::cancellation_type::terminal);
    });
    context.run();
    auto const out = m.over(n);
    check(ended, n, "cancel");
    return out;
}

} // namespace

sample cancel_results(std::int64_t n)
{
    return cancel(n, wait_for_result);
}

sample cancel_throwing(std::int64_t n)
{
    return cancel(n, wait_and_throw);
}

} // namespace plait::bench::with_asio
