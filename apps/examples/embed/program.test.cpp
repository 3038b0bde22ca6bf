#include <doctest/doctest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include <plait/tests/support/child_program.hpp>
#include <plait/tests/support/engine_fixture.hpp>

#include <csignal>
#include <string>
#include <vector>

using namespace plait::test;
using asio::ip::tcp;

TEST_CASE("the program serves until a signal ends it, whoever is connected and whatever they wait for")
{
    tiny_file model;
    for (int signal : {SIGINT, SIGTERM}) {
        child_program program(PLAIT_PROGRAM, {"--model", model.path().string(), "--port", "0", "--threads", "1"});
        asio::io_context context;
        tcp::endpoint const there(asio::ip::address_v4::loopback(), program.port());
        tcp::socket silent(context), busy(context);
        silent.connect(there);
        busy.connect(there);
        asio::write(busy, asio::buffer(std::string("one\ntwo\n")));
        std::string read;
        auto size = asio::read_until(busy, asio::dynamic_buffer(read), '\n');
        CHECK(size > 0);
        program.send_signal(SIGUSR1);
        CHECK(program.line().starts_with("at "));
        CHECK(!program.line_with("actor plait::").empty());
        program.send_signal(signal);
        asio::error_code code;
        asio::read(silent, asio::dynamic_buffer(read), code);
        CHECK(code == asio::error::eof);
        CHECK(program.end() == 0);
    }
}

TEST_CASE("a wrong command line ends in 2 and a model that cannot be opened in 1, with a line that says why")
{
    struct attempt {
        std::vector<std::string> arguments;
        int status;
        std::string names;
    };
    tiny_file model;
    auto const path = model.path().string();
    for (auto const& a : std::vector<attempt>{{{}, 2, "--model"},
                                              {{"--model"}, 2, "--model"},
                                              {{"--model", path, "--port", "70000"}, 2, "--port"},
                                              {{"--model", path, "--port", "1x"}, 2, "--port"},
                                              {{"--model", path, "--threads", "0"}, 2, "--threads"},
                                              {{"--model", path, "--colour", "red"}, 2, "--colour"},
                                              {{"--model", "/nowhere/model.gguf"}, 1, "/nowhere/model.gguf"}}) {
        CAPTURE(a.names);
        child_program program(PLAIT_PROGRAM, a.arguments);
        auto const said = program.line();
        CHECK(said.starts_with("plait-embed: "));
        CHECK(said.find(a.names) != said.npos);
        CHECK(program.end() == a.status);
    }
}
