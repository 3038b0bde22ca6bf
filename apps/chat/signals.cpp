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

} // namespace

int hold_signals(std::initializer_list<int> numbers)
{
    sigset_t set;
    ::sigemptyset(&set);
    for (int number : numbers)
        if (!ignored(number)) ::sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    int const descriptor = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) throw error(errc::io, std::string("signalfd: ") + std::strerror(errno));
    return descriptor;
}

int next_signal(int descriptor) noexcept
{
    signalfd_siginfo info;
    bool const got = ::read(descriptor, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
    return got ? static_cast<int>(info.ssi_signo) : 0;
}

held_signals::held_signals()
    : descriptor_(hold_signals({SIGINT, SIGTERM, SIGHUP, SIGUSR1}))
{
}

held_signals::~held_signals()
{
    ::close(descriptor_);
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
        if (int const number = next_signal(descriptor_); number != 0) return number;
    }
}

} // namespace plait::chat
