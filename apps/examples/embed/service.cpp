#include "service.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

using asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;

namespace {

/// Completes with a tuple that begins with the error code, instead of throwing it.
constexpr asio::experimental::as_tuple_t<asio::use_awaitable_t<>> as_tuple;

std::string in_one_line(std::string const& text)
{
    std::string out;
    for (char c : text) {
        if (c == '\n' || c == '\\') out += '\\';
        out += c == '\n' ? 'n' : c;
    }
    return out;
}

} // namespace

service::service(asio::io_context& context, plait::engine engine, options how)
    : context_(context)
    , engine_(std::move(engine))
    , options_(std::move(how))
    , acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), options_.port))
{
}

void service::start()
{
    asio::co_spawn(context_, accept(), [self = shared_from_this()](std::exception_ptr) {});
}

void service::close()
{
    acceptor_.close();
    for (auto& client : clients_)
        client.emit(asio::cancellation_type::terminal);
}

asio::awaitable<void> service::accept()
{
    while (acceptor_.is_open()) {
        auto [code, client] = co_await acceptor_.async_accept(as_tuple);
        if (!acceptor_.is_open()) break;
        if (code) {
            // Out of descriptors, for example: somebody has to leave first.
            asio::steady_timer pause(context_, std::chrono::milliseconds(100));
            co_await pause.async_wait(as_tuple);
            continue;
        }
        auto signal = clients_.emplace(clients_.end());
        auto left = [self = shared_from_this(), signal](std::exception_ptr) { self->clients_.erase(signal); };
        asio::co_spawn(context_, talk(std::move(client)), asio::bind_cancellation_slot(signal->slot(), left));
    }
}

asio::awaitable<void> service::talk(tcp::socket client)
{
    client.set_option(tcp::no_delay(true));
    if (options_.send_buffer > 0) client.set_option(tcp::socket::send_buffer_size(options_.send_buffer));
    std::string unread;
    while (true) {
        auto buffer = asio::dynamic_buffer(unread, options_.longest_line);
        auto [code, size] = co_await asio::async_read_until(client, buffer, '\n', as_tuple);
        if (code == asio::error::not_found) {
            auto answer = asio::buffer("\\! the line is too long\n");
            co_await asio::async_write(client, answer, as_tuple);
        }
        if (code) co_return;
        auto question = unread.substr(0, size - 1);
        unread.erase(0, size);
        auto first = co_await (answer(client, std::move(question)) || gone(client, unread));
        if (first.index() == 1 || !std::get<0>(first)) co_return;
    }
}

/// Sends the answer as it comes. False when the client does not take it.
asio::awaitable<bool> service::answer(tcp::socket& client, std::string question)
{
    plait::request what;
    what.sampling = options_.sampling;
    what.max_tokens = options_.max_tokens;
    if (engine_.info().chat)
        what.messages.push_back({"user", std::move(question)});
    else
        what.text = std::move(question);
    auto [failure, generation] = co_await plait::async_submit(engine_, std::move(what), as_tuple);
    while (!failure) {
        auto [code, piece] = co_await plait::async_next(generation, as_tuple);
        failure = code;
        if (!piece) break;
        // As long as the client does not read this waits, and soon so does its request, but nobody else's.
        auto text = in_one_line(piece->text);
        auto [broken, sent] = co_await asio::async_write(client, asio::buffer(text), as_tuple);
        if (broken) co_return false;
    }
    if (!failure) failure = generation.result().failure;
    auto end = failure ? "\\! " + in_one_line(failure.message()) + "\n" : std::string("\n");
    auto [broken, sent] = co_await asio::async_write(client, asio::buffer(end), as_tuple);
    co_return !broken;
}

/// Returns when the client has closed its connection; keeps what it sends meanwhile.
asio::awaitable<void> service::gone(tcp::socket& client, std::string& unread)
{
    char part[256];
    while (unread.size() < options_.longest_line) {
        auto [code, size] = co_await client.async_read_some(asio::buffer(part), as_tuple);
        if (code) co_return;
        unread.append(part, size);
    }
    co_await client.async_wait(tcp::socket::wait_error, as_tuple);
}
