#include <plait/apps/chat/terminal.hpp>

#include <plait/apps/chat/signals.hpp>

#include <csignal>

#include <pthread.h>
#include <unistd.h>

namespace plait::chat {

terminal::terminal()
    : signals_(hold_signals({SIGWINCH, SIGTSTP, SIGCONT}))
    , known_(::tcgetattr(STDIN_FILENO, &before_) == 0)
{
}

terminal::~terminal()
{
    restore();
    ::close(signals_);
}

int terminal::take_signal() const noexcept
{
    return next_signal(signals_);
}

void terminal::stop_at_once(bool yes) const noexcept
{
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGTSTP);
    ::pthread_sigmask(yes ? SIG_UNBLOCK : SIG_BLOCK, &set, nullptr);
}

void terminal::stop_process() const noexcept
{
    std::raise(SIGTSTP);
    stop_at_once(true);
    stop_at_once(false);
}

void terminal::keep_keys() const noexcept
{
    if (!known_) return;
    auto mode = before_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
}

void terminal::restore() const noexcept
{
    if (known_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

} // namespace plait::chat
