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

/// poll(2) passes over descriptors of -1.
waited wait(int descriptor, short what, int leave, int interrupt, int signals)
{
    std::array<pollfd, 4> all{
        {{leave, POLLIN, 0}, {descriptor, what, 0}, {interrupt, POLLIN, 0}, {signals, POLLIN, 0}}};
    while (::poll(all.data(), all.size(), -1) < 0)
        if (errno != EINTR) throw error(errc::io, std::string("poll: ") + std::strerror(errno));
    if (all[0].revents != 0) return waited::left;
    if (all[2].revents != 0) return waited::interrupted;
    return all[3].revents != 0 ? waited::signalled : waited::ready;
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

waited wait_for_input(int descriptor, wakers& by, int signals)
{
    auto const what = wait(descriptor, POLLIN, by.leave.descriptor(), by.interrupt.descriptor(), signals);
    if (what == waited::interrupted) by.interrupt.take();
    return what;
}

waited wait_for_output(int descriptor, wakers& by)
{
    return wait(descriptor, POLLOUT, by.leave.descriptor(), -1, -1);
}

} // namespace plait::chat
