#include <doctest/doctest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include <plait/tests/support/child_program.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using asio::ip::tcp;
using plait::test::child_program;

namespace {

/// Somebody in the room.
class guest {
public:
    guest(asio::io_context& context, unsigned short port, int receive_buffer = 0)
        : socket_(context)
    {
        socket_.open(tcp::v4());
        if (receive_buffer > 0) socket_.set_option(tcp::socket::receive_buffer_size(receive_buffer));
        socket_.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port));
    }

    void say(std::string const& line) { asio::write(socket_, asio::buffer(line + "\n")); }

    /// The next line that it hears; "" at the end of the connection.
    std::string hears()
    {
        asio::error_code code;
        auto const size = asio::read_until(socket_, asio::dynamic_buffer(unread_), '\n', code);
        if (code) return {};
        auto line = unread_.substr(0, size - 1);
        unread_.erase(0, size);
        return line;
    }

    void leave() { socket_.close(); }

private:
    tcp::socket socket_;
    std::string unread_;
};

/// Asks the program for its statistics until they say `text`.
void await_report(child_program& program, std::string const& text)
{
    for (std::string line; line.find(text) == line.npos;) {
        program.send_signal(SIGUSR1);
        line = program.line_with(" lines said"); // what goes on inside stands between these
        REQUIRE(!line.empty());
    }
}

} // namespace

TEST_CASE("what one guest says the others hear, until a signal ends the program in order")
{
    for (int signal : {SIGINT, SIGTERM}) {
        child_program program(PLAIT_PROGRAM, {});
        asio::io_context context;
        auto const port = program.port();
        guest one(context, port);
        await_report(program, "1 here"); // so that it is number 1
        guest two(context, port);
        await_report(program, "2 here");
        guest three(context, port);
        await_report(program, "3 here");
        one.say("hello");
        CHECK(two.hears() == "1: hello");
        CHECK(three.hears() == "1: hello");
        two.say("and hello");
        CHECK(one.hears() == "2: and hello");
        CHECK(three.hears() == "2: and hello");
        three.leave();
        await_report(program, "2 here, 2 lines said, 0 lost");
        program.send_signal(signal);
        CHECK(one.hears().empty());
        CHECK(two.hears().empty());
        CHECK(program.end() == 0);
    }
}

TEST_CASE("a guest who reads slowly misses lines and is told how many, and nobody else waits")
{
    child_program program(PLAIT_PROGRAM, {"--backlog", "2"});
    asio::io_context context;
    auto const port = program.port();
    guest talks(context, port);
    await_report(program, "1 here");
    guest reads(context, port);
    await_report(program, "2 here");
    guest slow(context, port, 4096);
    await_report(program, "3 here");
    // More than the system keeps for a connection.
    std::string const line(60'000, 'x');
    int said = 0;
    for (; said < 400; ++said) {
        talks.say(line);
        CHECK(reads.hears() == "1: " + line);
    }
    // It reads what was kept for it. What is said when there is room again begins with what it has missed.
    auto heard = slow.hears();
    int whole = 0;
    for (; heard.starts_with("1: x"); heard = slow.hears()) {
        ++whole;
        talks.say(line);
        ++said;
    }
    CHECK(whole < said);
    CHECK(heard.starts_with("* "));
    CHECK(heard.ends_with(" lines missed"));
    program.send_signal(SIGTERM);
    CHECK(program.end() == 0);
}

TEST_CASE("a guest who says nothing has to leave, and one who does not even read does not keep the program")
{
    child_program program(PLAIT_PROGRAM, {"--idle-ms", "20"});
    asio::io_context context;
    auto const port = program.port();
    guest silent(context, port);
    CHECK(silent.hears() == "* you said nothing for too long");
    CHECK(silent.hears().empty());
    guest another(context, port);
    program.send_signal(SIGTERM);
    CHECK(program.end() == 0);
}

TEST_CASE("the program prints what goes on now and then, and when it gets SIGUSR1")
{
    for (std::vector<std::string> const& arguments : {{"--report-ms", "1"}, std::vector<std::string>{}}) {
        child_program program(PLAIT_PROGRAM, arguments);
        program.port();
        for (int i = 0; i < 2; ++i) {
            if (arguments.empty()) program.send_signal(SIGUSR1);
            CHECK(program.line_with("here") == "0 here, 0 lines said, 0 lost");
            if (!arguments.empty()) continue;
            CHECK(program.line().starts_with("at "));
            CHECK(program.line_with("actor ").find("room #1: idle") != std::string::npos);
            // What waits for the next connection, and for the signal after this one.
            CHECK(!program.line_with(" waits for an Asio operation").empty());
        }
        program.send_signal(SIGTERM);
        CHECK(program.end() == 0);
    }
}

TEST_CASE("the program writes when its guests were there where it is asked to")
{
    plait::test::temporary_folder folder;
    auto const file = folder.path() / "trace.json";
    child_program program(PLAIT_PROGRAM, {"--trace", file.string(), "--backlog", "8"});
    asio::io_context context;
    guest one(context, program.port());
    await_report(program, "1 here");
    program.send_signal(SIGTERM);
    CHECK(program.end() == 0);
    std::ifstream in(file);
    std::string const text(std::istreambuf_iterator<char>(in), {});
    CHECK(text.find("\"ph\":\"b\",\"name\":\"guest\"") != text.npos);
    CHECK(text.find("\"ph\":\"e\",\"name\":\"guest\"") != text.npos);
}

TEST_CASE("a wrong command line ends in 2 and a port that is taken in 1, with a line that says why")
{
    struct attempt {
        std::vector<std::string> arguments;
        int status;
        std::string says;
    };
    asio::io_context context;
    tcp::acceptor taken(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    auto const port = std::to_string(taken.local_endpoint().port());
    for (auto const& a : std::vector<attempt>{{{"--port"}, 2, "--port"},
                                              {{"--port", "70000"}, 2, "--port"},
                                              {{"--idle-ms", "1x"}, 2, "--idle-ms"},
                                              {{"--backlog", "-1"}, 2, "--backlog"},
                                              {{"--colour", "red"}, 2, "--colour"},
                                              {{"--port", port}, 1, "bind"}}) {
        CAPTURE(a.says);
        child_program program(PLAIT_PROGRAM, a.arguments);
        auto const said = program.line();
        CHECK(said.starts_with("plait-service: "));
        CHECK(said.find(a.says) != said.npos);
        CHECK(program.end() == a.status);
    }
}
