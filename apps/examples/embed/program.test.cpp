#include <doctest/doctest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include <plait/tests/support/engine_fixture.hpp>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

using namespace plait::test;
using asio::ip::tcp;

namespace {

/// plait-embed as a process of its own, with what it says on both outputs.
class embed {
public:
    explicit embed(std::vector<std::string> arguments)
    {
        arguments.insert(arguments.begin(), PLAIT_PROGRAM);
        std::vector<char*> words;
        for (auto& argument : arguments)
            words.push_back(argument.data());
        words.push_back(nullptr);
        std::array<int, 2> ends{};
        REQUIRE(::pipe(ends.data()) == 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        posix_spawn_file_actions_addclose(&actions, ends[0]);
        posix_spawn_file_actions_addclose(&actions, ends[1]);
        auto const failed = ::posix_spawn(&process_, PLAIT_PROGRAM, &actions, nullptr, words.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        said_ = ends[0];
        REQUIRE(failed == 0);
    }
    ~embed()
    {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
        }
        ::close(said_);
    }
    embed(embed const&) = delete;
    embed& operator=(embed const&) = delete;

    /// The next line that it says; less at its end.
    std::string line()
    {
        std::string out;
        char c = 0;
        while (::read(said_, &c, 1) == 1 && c != '\n')
            out += c;
        return out;
    }

    unsigned short port()
    {
        auto const said = line();
        REQUIRE(said.starts_with("listening on 127.0.0.1:"));
        return static_cast<unsigned short>(std::stoi(said.substr(said.find(':') + 1)));
    }

    void send_signal(int number) const { ::kill(process_, number); }

    /// Waits for its end; the exit status, or -1 when a signal ended it.
    int end()
    {
        int status = 0;
        ::waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    pid_t process_ = -1;
    int said_ = -1;
};

} // namespace

TEST_CASE("the program serves until a signal ends it, whoever is connected and whatever they wait for")
{
    tiny_file model;
    for (int signal : {SIGINT, SIGTERM}) {
        embed program({"--model", model.path().string(), "--port", "0", "--threads", "1"});
        asio::io_context context;
        tcp::endpoint const there(asio::ip::address_v4::loopback(), program.port());
        tcp::socket silent(context), busy(context);
        silent.connect(there);
        busy.connect(there);
        asio::write(busy, asio::buffer(std::string("one\ntwo\n")));
        std::string read;
        auto size = asio::read_until(busy, asio::dynamic_buffer(read), '\n');
        CHECK(size > 0);
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
        embed program(a.arguments);
        auto const said = program.line();
        CHECK(said.starts_with("plait-embed: "));
        CHECK(said.find(a.names) != said.npos);
        CHECK(program.end() == a.status);
    }
}
