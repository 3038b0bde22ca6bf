#include <plait/tests/chat/process.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plait::test {

namespace {

/// Longer than anything here takes on the slowest machine under a sanitizer: what is stuck fails instead of hanging.
constexpr int patience_ms = 120'000;

[[noreturn]] void fail(char const* what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

/// What a child needs, prepared before fork: nothing is allocated after it.
class command {
public:
    command(std::vector<std::string> const& arguments, std::filesystem::path const& home)
    {
        words_.emplace_back(PLAIT_CHAT);
        words_.insert(words_.end(), arguments.begin(), arguments.end());
        variables_.push_back("HOME=" + home.string());
        variables_.push_back("XDG_STATE_HOME=" + (home / "state").string());
        variables_.emplace_back("TERM=xterm");
        variables_.emplace_back("LC_ALL=C.UTF-8");
        for (auto const* name : {"PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"})
            if (auto const* value = std::getenv(name)) variables_.push_back(std::string(name) + "=" + value);
        for (auto& word : words_)
            argv_.push_back(word.data());
        argv_.push_back(nullptr);
        for (auto& variable : variables_)
            envp_.push_back(variable.data());
        envp_.push_back(nullptr);
    }

    [[noreturn]] void become() const
    {
        ::execve(argv_[0], argv_.data(), envp_.data());
        ::_exit(127);
    }

private:
    std::vector<std::string> words_;
    std::vector<std::string> variables_;
    std::vector<char*> argv_;
    std::vector<char*> envp_;
};

/// Holds signals back from before a fork until the child has set them to what they do by default: the test program's
/// own handlers must not run in it.
class quiet_fork {
public:
    quiet_fork()
    {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~quiet_fork() { restore(); }
    quiet_fork(quiet_fork const&) = delete;
    quiet_fork& operator=(quiet_fork const&) = delete;

    void in_child(bool ignores_interrupts) const
    {
        for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGABRT, SIGSEGV, SIGFPE, SIGILL})
            ::signal(number, SIG_DFL);
        if (ignores_interrupts) ::signal(SIGINT, SIG_IGN);
        restore();
    }

private:
    void restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    sigset_t before_;
};

std::pair<int, int> make_pipe()
{
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe2");
    return {ends[0], ends[1]};
}

void close_descriptor(int& descriptor)
{
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
}

int wait_for(pid_t process)
{
    int status = 0;
    while (::waitpid(process, &status, 0) < 0)
        if (errno != EINTR) fail("waitpid");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Reads what there is. False at the end; throws when nothing comes for too long.
bool read_into(int descriptor, std::string& out)
{
    pollfd one{descriptor, POLLIN, 0};
    int const ready = ::poll(&one, 1, patience_ms);
    if (ready == 0) throw std::runtime_error("plait-chat is silent; so far: " + out);
    std::array<char, 4096> block{};
    auto const got = ::read(descriptor, block.data(), block.size());
    if (got <= 0) return false; // a terminal that was left gives EIO
    out.append(block.data(), static_cast<std::size_t>(got));
    return true;
}

void write_all(int descriptor, std::string_view text)
{
    while (!text.empty()) {
        auto const put = ::write(descriptor, text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return; // it does not want to read: it says why
        text.remove_prefix(static_cast<std::size_t>(put));
    }
}

} // namespace

temporary_folder::temporary_folder()
{
    auto name = (std::filesystem::temp_directory_path() / "plait-chat-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("mkdtemp");
    path_ = name;
}

temporary_folder::~temporary_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

piped_chat::piped_chat(std::vector<std::string> const& arguments, places where)
{
    ::signal(SIGPIPE, SIG_IGN);
    command const what(arguments, where.home);
    auto [their_input, our_input] = make_pipe();
    auto [our_output, their_output] = make_pipe();
    auto [our_error, their_error] = make_pipe();
    quiet_fork const quiet;
    process_ = ::fork();
    if (process_ < 0) fail("fork");
    if (process_ == 0) {
        quiet.in_child(where.ignores_interrupts);
        if (where.output != nullptr) their_output = ::open(where.output, O_WRONLY);
        ::dup2(their_input, STDIN_FILENO);
        ::dup2(their_output, STDOUT_FILENO);
        ::dup2(their_error, STDERR_FILENO);
        what.become();
    }
    for (int descriptor : {their_input, their_output, their_error})
        ::close(descriptor);
    input_ = our_input;
    output_ = our_output;
    error_ = our_error;
}

piped_chat::~piped_chat()
{
    for (auto* descriptor : {&input_, &output_, &error_})
        close_descriptor(*descriptor);
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        wait_for(process_);
    }
}

std::string const& piped_chat::some_output()
{
    while (outcome_.output.empty())
        if (!read_into(output_, outcome_.output)) break;
    return outcome_.output;
}

void piped_chat::send_signal(int number) const
{
    ::kill(process_, number);
}

void piped_chat::close_output()
{
    close_descriptor(output_);
}

outcome piped_chat::finish(std::string_view input)
{
    write_all(input_, input);
    close_descriptor(input_);
    // Its errors are few: they fit in a pipe while the output is read.
    while (output_ >= 0 && read_into(output_, outcome_.output)) {
    }
    while (read_into(error_, outcome_.error)) {
    }
    outcome_.status = wait_for(std::exchange(process_, -1));
    return outcome_;
}

terminal_chat::terminal_chat(std::vector<std::string> const& arguments, std::filesystem::path const& home,
                             char const* input)
{
    command const what(arguments, home);
    winsize const size{40, 200, 0, 0}; // wide: lines are not broken in the middle of what a test looks for
    quiet_fork const quiet;
    process_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (process_ < 0) fail("forkpty");
    if (process_ == 0) {
        quiet.in_child(false);
        if (input != nullptr) ::dup2(::open(input, O_RDONLY), STDIN_FILENO);
        what.become();
    }
}

terminal_chat::~terminal_chat()
{
    close_descriptor(terminal_);
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        wait_for(process_);
    }
}

void terminal_chat::type(std::string_view keys) const
{
    write_all(terminal_, keys);
}

bool terminal_chat::read_some()
{
    return read_into(terminal_, outcome_.output);
}

bool terminal_chat::shows(std::string_view text)
{
    while (true) {
        if (auto const found = outcome_.output.find(text, seen_); found != std::string::npos) {
            seen_ = found + text.size();
            return true;
        }
        if (!read_some()) return false;
    }
}

void terminal_chat::resize(unsigned short columns) const
{
    winsize const size{40, columns, 0, 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
}

void terminal_chat::send_signal(int number) const
{
    ::kill(process_, number);
}

void terminal_chat::hang_up()
{
    close_descriptor(terminal_);
}

outcome terminal_chat::finish()
{
    while (terminal_ >= 0 && read_some()) {
    }
    outcome_.status = wait_for(std::exchange(process_, -1));
    return outcome_;
}

} // namespace plait::test
