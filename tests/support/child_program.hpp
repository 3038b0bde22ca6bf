#pragma once

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace plait::test {

/// A program as a process of its own, with what it says on both outputs. It is killed when this goes.
class child_program {
public:
    child_program(std::string const& path, std::vector<std::string> arguments)
    {
        arguments.insert(arguments.begin(), path);
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
        auto const failed = ::posix_spawn(&process_, path.c_str(), &actions, nullptr, words.data(), environ);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        said_ = ends[0];
        REQUIRE(failed == 0);
    }
    ~child_program()
    {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
        }
        ::close(said_);
    }
    child_program(child_program const&) = delete;
    child_program& operator=(child_program const&) = delete;

    /// The next line that it says; less at its end.
    std::string line()
    {
        std::string out;
        char c = 0;
        while (::read(said_, &c, 1) == 1 && c != '\n')
            out += c;
        return out;
    }

    /// The next line that has `part`; empty when none comes any more.
    std::string line_with(std::string const& part)
    {
        for (;;) {
            auto said = line();
            if (said.empty() || said.find(part) != said.npos) return said;
        }
    }

    /// Of the next line: "listening on 127.0.0.1:<port>".
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

} // namespace plait::test
