#include <plait/apps/chat/signals.hpp>

#include <plait/actors/error.hpp>
#include <plait/apps/chat/waker.hpp>

#include <array>
#include <cerrno>
#include <cstring>
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

sigset_t editing_signals() noexcept
{
    sigset_t set;
    ::sigemptyset(&set);
    for (int number : {SIGWINCH, SIGTSTP, SIGCONT})
        ::sigaddset(&set, number);
    return set;
}

} // namespace

stop_signals::stop_signals(bool editing)
{
    sigset_t set;
    ::sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP})
        if (!ignored(number)) ::sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) throw error(errc::io, std::string("signalfd: ") + std::strerror(errno));
    if (editing) {
        auto const editors = editing_signals();
        ::pthread_sigmask(SIG_BLOCK, &editors, nullptr);
    }
}

stop_signals::~stop_signals()
{
    ::close(descriptor_);
}

void stop_signals::let_editing_through() noexcept
{
    auto const editors = editing_signals();
    ::pthread_sigmask(SIG_UNBLOCK, &editors, nullptr);
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
        signalfd_siginfo info;
        if (::read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
            return static_cast<int>(info.ssi_signo);
    }
}

} // namespace plait::chat
