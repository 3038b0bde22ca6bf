#pragma once

#include <plait/actors/time/clock.hpp>

namespace plait {

/// Calls a function at a time: what a sleep is to a coroutine, for what is none. It lives from set() until it has rung,
/// or until a cancel() that gave true.
class alarm : private detail::timer {
public:
    using action = void (*)(alarm&) noexcept;

    /// `ring` is called on `where`, as one of its works; it may destroy this. `c` and `where` outlive the ringing.
    alarm(clock& c, executor& where, action ring) noexcept;

    /// Has it ring once, at `due` or soon after. It is not set already.
    void set(time_point due) noexcept;

    /// From any thread. False when it was not set, rings, or has rung.
    bool cancel() noexcept;

private:
    clock& clock_;
    action ring_;
};

} // namespace plait
