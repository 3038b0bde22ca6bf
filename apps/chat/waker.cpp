#include <plait/apps/chat/waker.hpp>

#include <plait/actors/error.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace plait::chat {

namespace {

bool readable(int descriptor) noexcept
{
    pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

waited wait(int descriptor, short what, wakers& by, bool for_interrupt)
{
    std::array<pollfd, 3> all{{
        {by.leave.descriptor(), POLLIN, 0},
        {descriptor, what, 0},
        {by.interrupt.descriptor(), POLLIN, 0},
    }};
    while (::poll(all.data(), for_interrupt ? 3 : 2, -1) < 0) {
        if (errno == EINTR) return waited::signalled;
        throw error(errc::io, std::string("poll: ") + std::strerror(errno));
    }
    if (all[0].revents != 0) return waited::left;
    if (for_interrupt && by.interrupt.take()) return waited::interrupted;
    return waited::ready;
}

} // namespace

waker::waker()
    : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (descriptor_ < 0) throw error(errc::io, std::string("eventfd: ") + std::strerror(errno));
}

waker::~waker()
{
    ::close(descriptor_);
}

void waker::wake() noexcept
{
    ::eventfd_write(descriptor_, 1);
}

bool waker::take() noexcept
{
    eventfd_t value = 0;
    return ::eventfd_read(descriptor_, &value) == 0;
}

bool waker::is_set() const noexcept
{
    return readable(descriptor_);
}

waited wait_for_input(int descriptor, wakers& by)
{
    return wait(descriptor, POLLIN, by, true);
}

waited wait_for_output(int descriptor, wakers& by)
{
    return wait(descriptor, POLLOUT, by, false);
}

} // namespace plait::chat
