#pragma once

#include <cstdint>
#include <memory>

namespace plait::chat {

/// A flag that any thread sets and that poll(2) sees: gets a thread out of a blocking wait.
class waker {
public:
    /// Throws error(errc::io).
    waker();
    ~waker();
    waker(waker const&) = delete;
    waker& operator=(waker const&) = delete;

    void wake() noexcept;
    /// Whether it was set; it is not any more.
    bool take() noexcept;
    bool is_set() const noexcept;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

/// What can end a wait for the keyboard or for a slow reader of the output. The program and its console share one.
struct wakers {
    waker interrupt; ///< gives up the line that is being typed; whoever sees it takes it
    waker leave;     ///< gives up everything, for good
};

enum class waited : std::uint8_t {
    ready,       ///< the descriptor can be read or written, or is broken: the call that follows tells
    interrupted, ///< wakers::interrupt, which was taken
    left,        ///< wakers::leave
    signalled,   ///< a signal has come
};

/// Blocks until the input `descriptor` can be read, `by` is set, or `signals`, a descriptor of signals or -1, has one.
waited wait_for_input(int descriptor, wakers& by, int signals = -1);

/// Blocks until some bytes can be written to `descriptor` without waiting, or `by.leave` is set.
waited wait_for_output(int descriptor, wakers& by);

} // namespace plait::chat
