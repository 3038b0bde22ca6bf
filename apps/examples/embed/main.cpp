// A service that embeds plait:  plait-embed --model FILE [--port N] [--threads N] [--max-tokens N] [--trace FILE]
// It prints the port, and serves until Ctrl-C; SIGUSR1 shows what goes on inside. Try it with:  nc 127.0.0.1 PORT
#include "service.hpp"

#include <plait/actors/dump/dump.hpp>
#include <plait/streams/trace_file.hpp>

#include <asio/bind_executor.hpp>
#include <asio/signal_set.hpp>

#include <charconv>
#include <csignal>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

struct command_line {
    plait::engine_options engine;
    service::options serving;
    std::string trace; ///< empty: none
};

/// A whole number from `low` to `high`.
std::int64_t number(std::string_view name, std::string const& text, std::int64_t low, std::int64_t high)
{
    std::int64_t value = 0;
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
    throw std::invalid_argument(std::string(name) + ": " + text + " is not a number from " + std::to_string(low) +
                                " to " + std::to_string(high));
}

command_line parse(int count, char** arguments)
{
    command_line out;
    out.trace = plait::take_trace_option(count, arguments);
    for (int i = 1; i < count; i += 2) {
        std::string_view const name = arguments[i];
        if (i + 1 == count) throw std::invalid_argument(std::string(name) + ": a value is missing");
        std::string const value = arguments[i + 1];
        if (name == "--model")
            out.engine.model = value;
        else if (name == "--port")
            out.serving.port = static_cast<std::uint16_t>(number(name, value, 0, 65535));
        else if (name == "--threads")
            out.engine.threads = static_cast<unsigned>(number(name, value, 1, 1024));
        else if (name == "--max-tokens")
            out.serving.max_tokens = number(name, value, 1, std::numeric_limits<int>::max());
        else
            throw std::invalid_argument(std::string(name) + " is not an option");
    }
    if (out.engine.model.empty()) throw std::invalid_argument("--model FILE is missing");
    return out;
}

/// What goes on in the runtime, when somebody asks for it with SIGUSR1.
void show(std::error_code, std::string const& now)
{
    std::cerr << now << std::flush;
}

void serve(command_line given)
{
    plait::trace_file trace(given.trace);
    given.engine.record = trace.record();
    asio::io_context context(1); // outlives the runtime, whose last operations complete into it
    plait::runtime home;
    auto engine = home.run(plait::open(home, given.engine));
    asio::signal_set signals(context, SIGINT, SIGTERM, SIGUSR1);
    auto serving = std::make_shared<service>(context, engine, given.serving);
    std::function<void()> const obey = [&] {
        signals.async_wait([&](std::error_code, int number) {
            if (number != SIGUSR1) return serving->close();
            plait::async_start(home, plait::dump(home), asio::bind_executor(context, show));
            obey();
        });
    };
    obey();
    serving->start();
    std::cout << "listening on 127.0.0.1:" << serving->port() << std::endl;
    context.run();
    home.run(engine.close(false));
    trace.write();
}

} // namespace

int main(int argc, char** argv)
{
    command_line given;
    try {
        given = parse(argc, argv);
    } catch (std::exception const& e) {
        std::cerr << "plait-embed: " << e.what()
                  << "\nplait-embed --model FILE [--port N] [--threads N] [--max-tokens N] [--trace FILE]\n";
        return 2;
    }
    try {
        serve(std::move(given));
    } catch (std::exception const& e) {
        std::cerr << "plait-embed: " << e.what() << "\n";
        return 1;
    }
}
