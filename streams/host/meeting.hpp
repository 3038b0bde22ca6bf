#pragma once

#include <exception>

namespace plait::host {

class compute_pool;

/// What a host stream waits for at its head when others take part in it: one device's side of a collective. Its stream
/// calls it, on its device's thread.
class meeting {
public:
    meeting() = default;
    meeting(meeting const&) = delete;
    meeting& operator=(meeting const&) = delete;
    virtual ~meeting();

    /// The stream has come to it: what was put before is done. Called once. Who comes last does the work, on `pool`.
    virtual void arrive(compute_pool& pool) noexcept = 0;

    /// Whether the stream may go on. When that changes, the device's doorbell rings.
    virtual bool over() const noexcept = 0;

    /// The stream has failed with `why`, and does not come, or does not wait any longer. When it returns nobody touches
    /// the device's memory.
    virtual void withdraw(std::exception_ptr why) noexcept = 0;
};

} // namespace plait::host
