#pragma once

#include <plait/engine/async.hpp>

#include <asio/awaitable.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <string>

/// A TCP service on the loopback interface: a client sends a question in a line and gets the answer in a line, as it
/// comes; then the next. In an answer a line break is sent as \n and a backslash as \\; \! begins an error that ends
/// it. A client that closes its connection wants nothing more: its request is cancelled, and its memory is free.
///
/// Runs on the one thread that runs the io_context. Lives until it was closed and its last client has left.
class service : public std::enable_shared_from_this<service> {
public:
    struct options {
        std::uint16_t port = 0; ///< 0: any that is free
        plait::sampling_options sampling;
        std::int64_t max_tokens = 512;        ///< of an answer
        std::size_t longest_line = 64 * 1024; ///< of a question
        int send_buffer = 0; ///< bytes that the system keeps for a client that reads slowly; 0: its default
    };

    service(asio::io_context& context, plait::engine engine, options how);

    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

    /// Begins to accept clients.
    void start();

    /// Takes no more clients and lets go of those that are here.
    void close();

private:
    asio::awaitable<void> accept();
    asio::awaitable<void> talk(asio::ip::tcp::socket client);
    asio::awaitable<bool> answer(asio::ip::tcp::socket& client, std::string question);
    asio::awaitable<void> gone(asio::ip::tcp::socket& client, std::string& unread);

    asio::io_context& context_;
    plait::engine engine_;
    options options_;
    asio::ip::tcp::acceptor acceptor_;
    std::list<asio::cancellation_signal> clients_;
};
