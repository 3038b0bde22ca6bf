// The first example to read: a chat room for lines over TCP, in one io_context and on one thread.
//
//   plait-service [--port N] [--idle-ms N] [--report-ms N] [--backlog N] [--trace FILE]
//
// It prints its port; talk with:  nc 127.0.0.1 PORT.  What one says the others hear, as "2: hello". Whoever says
// nothing for too long has to leave; whoever reads too slowly misses lines, and is told how many. SIGUSR1 prints what
// goes on, Ctrl-C and SIGTERM end it in order. The trace shows when each was there (ui.perfetto.dev draws it).
#include <plait/actors/asio.hpp>
#include <plait/actors/dump/dump.hpp>
#include <plait/actors/sync/channel.hpp>
#include <plait/actors/tasks/scope.hpp>
#include <plait/actors/tasks/timeout.hpp>
#include <plait/actors/tasks/when_any.hpp>
#include <plait/streams/trace_file.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <charconv>
#include <csignal>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

using asio::ip::tcp;
using namespace plait;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t longest_line = 64 * 1024;

struct command_line {
    int port = 0;           ///< 0: any that is free
    int idle_ms = 300'000;  ///< after which somebody who says nothing leaves
    int report_ms = 60'000; ///< between two lines of statistics
    int backlog = 64;       ///< lines that wait for somebody who reads slowly
};

// What all connections share is an actor: its methods never run at the same time, so it needs no lock.

using line_queue = channel<std::string>;

struct statistics {
    std::size_t members = 0;
    std::size_t said = 0;
    std::size_t lost = 0;
};

class room : public actor {
public:
    int join(std::shared_ptr<line_queue> hears)
    {
        members_[++last_].hears = std::move(hears);
        return last_;
    }

    void leave(int who) { members_.erase(who); }

    void say(int who, std::string const& line)
    {
        ++said_;
        for (auto& [number, m] : members_) {
            if (number != who) hand(m, std::to_string(who) + ": " + line);
        }
    }

    statistics look() const { return {members_.size(), said_, lost_}; }

private:
    struct member {
        std::shared_ptr<line_queue> hears;
        std::size_t missed = 0;
    };

    /// The queue is bounded and the room waits for nobody: who does not keep up misses lines.
    void hand(member& to, std::string line)
    {
        if (to.missed > 0 && to.hears->try_send("* " + std::to_string(to.missed) + " lines missed\n")) to.missed = 0;
        if (to.hears->try_send(std::move(line))) return;
        ++to.missed;
        ++lost_;
    }

    std::map<int, member> members_;
    int last_ = 0;
    std::size_t said_ = 0;
    std::size_t lost_ = 0;
};

void print(statistics const& now)
{
    std::cout << now.members << " here, " << now.said << " lines said, " << now.lost << " lost" << std::endl;
}

class service {
public:
    service(asio::io_context& context, runtime& home, command_line const& how, trace* record)
        : context_(context)
        , home_(home)
        , how_(how)
        , idle_(how.idle_ms)
        , room_(home.spawn<room>())
        , acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(how.port)))
        , signals_(context, SIGINT, SIGTERM, SIGUSR1)
        , record_(record == nullptr ? nullptr : &record->add("the room", home.clock()))
    {
    }

    /// Serves until a signal ends it. Everything that runs meanwhile is in the scope, which waits for it.
    task<> run()
    {
        auto body = [this](scope& all) -> task<> {
            all.start(accept(all));
            all.start(asio::co_spawn(context_, report(), use_task)); // an Asio coroutine is a task like any other
            std::cout << "listening on 127.0.0.1:" << acceptor_.local_endpoint().port() << std::endl;
            co_await signalled();
            all.request_stop();
        };
        co_await with_scope(body);
    }

private:
    task<> signalled()
    {
        for (;;) {
            auto number = co_await signals_.async_wait(use_task);
            if (number != SIGUSR1) co_return;
            auto now = co_await ask<&room::look>(room_);
            print(now);
            auto inside = co_await dump(home_);
            std::cerr << inside << std::flush; // every actor, and where each task waits
        }
    }

    task<> accept(scope& all)
    {
        for (;;) {
            auto client = co_await as_result(acceptor_.async_accept(use_task));
            if (client) {
                all.start(talk(std::move(client).value()));
            } else if (client.error() == errc::cancelled) {
                co_return;
            } else {
                // Out of descriptors, for example: somebody has to leave first.
                co_await home_.clock().sleep_for(milliseconds(100));
            }
        }
    }

    /// One client: what it says and what it hears, side by side, until one of them ends.
    task<> talk(tcp::socket client)
    {
        auto hears = std::make_shared<line_queue>(static_cast<std::size_t>(how_.backlog));
        auto me = co_await ask<&room::join>(room_, hears);
        if (record_ != nullptr) record_->begin("guest", me);
        auto end = co_await as_result(when_any(listen(client, me), speak(client, *hears)));
        if (record_ != nullptr) record_->end("guest", me);
        // Also when the service is being stopped:
        co_await shield(ask<&room::leave>(room_, me));
        if (end.error() == errc::deadline_exceeded) {
            auto bye = asio::async_write(client, asio::buffer(std::string_view("* you said nothing for too long\n")),
                                         use_task);
            [[maybe_unused]] auto told = co_await as_result(timeout(home_.clock(), idle_, std::move(bye)));
        }
    }

    task<> listen(tcp::socket& client, int me)
    {
        std::string unread;
        for (;;) {
            auto line = asio::async_read_until(client, asio::dynamic_buffer(unread, longest_line), '\n', use_task);
            auto size = co_await timeout(home_.clock(), idle_, std::move(line));
            co_await tell<&room::say>(room_, me, unread.substr(0, size));
            unread.erase(0, size);
        }
    }

    static task<> speak(tcp::socket& client, line_queue& hears)
    {
        for (;;) {
            auto line = co_await hears.receive();
            if (!line) co_return;
            co_await asio::async_write(client, asio::buffer(*line), use_task);
        }
    }

    /// The other way round: a coroutine of Asio's asks an actor of plait's, through a completion token.
    asio::awaitable<void> report()
    {
        asio::steady_timer timer(context_);
        for (;;) {
            timer.expires_after(milliseconds(how_.report_ms));
            co_await timer.async_wait(asio::use_awaitable);
            auto now = co_await async_start(home_, ask<&room::look>(room_), asio::use_awaitable);
            print(now);
        }
    }

    asio::io_context& context_;
    runtime& home_;
    command_line const how_;
    milliseconds const idle_;
    ref<room> room_;
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
    trace_part* record_; ///< who was here, and when; null: nobody asked
};

command_line parse(int count, char** arguments)
{
    command_line out;
    std::map<std::string_view, int*> const options{{"--port", &out.port},
                                                   {"--idle-ms", &out.idle_ms},
                                                   {"--report-ms", &out.report_ms},
                                                   {"--backlog", &out.backlog}};
    for (int i = 1; i < count; i += 2) {
        std::string const name = arguments[i];
        std::string const text = i + 1 < count ? arguments[i + 1] : "";
        auto const option = options.find(name);
        if (option == options.end()) throw std::invalid_argument(name + " is not an option");
        auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *option->second);
        bool const bad = failed != std::errc() || end != text.data() + text.size();
        if (bad || *option->second < 0 || out.port > 65535) throw std::invalid_argument(name + " is out of its range");
    }
    return out;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        trace_file trace(take_trace_option(argc, argv));
        auto const how = parse(argc, argv);
        asio::io_context context(1);
        asio_runtime here(context); // on this thread alone: it starts none
        service all(context, here.home(), how, trace.record().get());
        here.run(all.run()); // runs the context until the service has ended
        trace.write();
    } catch (std::invalid_argument const& e) {
        std::cerr << "plait-service: " << e.what() << "\n";
        return 2;
    } catch (std::exception const& e) {
        std::cerr << "plait-service: " << e.what() << "\n";
        return 1;
    }
}
