#include <plait/apps/chat/signals.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/chat/waker.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <string>

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace plait::chat {

namespace {

bool ignored(int number) noexcept
{
    struct sigaction now{};
    return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t set_of(std::initializer_list<int> numbers) noexcept
{
    sigset_t set;
    ::sigemptyset(&set);
    for (int number : numbers)
        ::sigaddset(&set, number);
    return set;
}

/// Blocks the signals of `set` in this thread, and those that it will start, and gives them to a descriptor.
int hold(sigset_t const& set)
{
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    int const descriptor = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) throw error(errc::io, std::string("signalfd: ") + std::strerror(errno));
    return descriptor;
}

int next_of(int descriptor) noexcept
{
    signalfd_siginfo info;
    bool const got = ::read(descriptor, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    return got ? static_cast<int>(info.ssi_signo) : 0;
}

sigset_t not_ignored(std::initializer_list<int> numbers) noexcept
{
    auto set = set_of(numbers);
    for (int number : numbers)
        if (ignored(number)) ::sigdelset(&set, number);
    return set;
}

} // namespace

stop_signals::stop_signals()
    : descriptor_(hold(not_ignored({SIGINT, SIGTERM, SIGHUP})))
{
}

stop_signals::~stop_signals()
{
    ::close(descriptor_);
}

terminal_signals::terminal_signals()
    : descriptor_(hold(set_of({SIGWINCH, SIGTSTP, SIGCONT})))
{
}

terminal_signals::~terminal_signals()
{
    ::close(descriptor_);
}

int terminal_signals::take() const noexcept
{
    return next_of(descriptor_);
}

void terminal_signals::stop_at_once(bool yes) const noexcept
{
    auto const set = set_of({SIGTSTP});
    ::pthread_sigmask(yes ? SIG_UNBLOCK : SIG_BLOCK, &set, nullptr);
}

void terminal_signals::stop_process() const noexcept
{
    std::raise(SIGTSTP);
    stop_at_once(true);
    stop_at_once(false);
}

int signal_source::next()
{
    while (true) {
        std::array<pollfd, 2> both{{{closing_->descriptor(), POLLIN, 0}, {descriptor_, POLLIN, 0}}};
        if (::poll(both.data(), both.size(), -1) < 0) {
            if (errno == EINTR) continue;
            throw error(errc::io, std::string("poll: ") + std::strerror(errno));
        }
        if (both[0].revents != 0) return 0;
        if (int const number = next_of(descriptor_); number != 0) return number;
    }
}

} // namespace plait::chat
