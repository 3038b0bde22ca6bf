#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace plait::test {

/// A folder in the system's temporary folder with a name of its own, removed with what is in it by the destructor.
class temporary_folder {
public:
    temporary_folder();
    ~temporary_folder();
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;

    std::filesystem::path const& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// How a program that was run ended.
struct outcome {
    int status = -1; ///< as a shell has it: 128 + the signal that killed it
    std::string output;
    std::string error;
};

/// plait-chat with its input, output and errors on pipes.
class piped_chat {
public:
    struct places {
        std::filesystem::path home;   ///< HOME and XDG_STATE_HOME
        char const* output = nullptr; ///< a file for standard output instead of a pipe
        bool ignores_interrupts = false;
    };

    piped_chat(std::vector<std::string> const& arguments, places where);
    ~piped_chat();
    piped_chat(piped_chat const&) = delete;
    piped_chat& operator=(piped_chat const&) = delete;

    /// Waits for something on standard output; returns what there is.
    std::string const& some_output();
    void send_signal(int number) const;
    void close_output();

    /// Gives it `input` and the end of it, and waits for its end.
    outcome finish(std::string_view input = {});

private:
    pid_t process_ = -1;
    int input_ = -1;
    int output_ = -1;
    int error_ = -1;
    outcome outcome_;
};

/// plait-chat on a terminal of its own.
class terminal_chat {
public:
    /// `input`: a file for standard input instead of the terminal.
    terminal_chat(std::vector<std::string> const& arguments, std::filesystem::path const& home,
                  char const* input = nullptr);
    ~terminal_chat();
    terminal_chat(terminal_chat const&) = delete;
    terminal_chat& operator=(terminal_chat const&) = delete;

    void type(std::string_view keys) const;
    /// Reads until `text` has come since the last call, and forgets up to its end. False when the program ends or a
    /// minute passes without it.
    bool shows(std::string_view text);
    void resize(unsigned short columns) const;
    void send_signal(int number) const;
    /// The terminal goes away.
    void hang_up();
    /// Waits for its end; the output is all that the terminal was given.
    outcome finish();

    std::string const& all() const noexcept { return outcome_.output; }

private:
    bool read_some();

    pid_t process_ = -1;
    int terminal_ = -1;
    std::size_t seen_ = 0;
    outcome outcome_;
};

} // namespace plait::test
