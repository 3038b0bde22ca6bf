#pragma once

#include <plait/actors/event_loop.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

namespace plait::host {

/// Reaches a device from other threads: wakes its loop, so that the device is polled, and tells it that it has failed.
/// Shared by the device and those who may ring, and so it may outlive the device, which closes it.
class doorbell : public std::enable_shared_from_this<doorbell> {
public:
    doorbell();
    doorbell(doorbell const&) = delete;
    doorbell& operator=(doorbell const&) = delete;
    ~doorbell();

    /// On the device's thread: from now on `home` is posted to, until close().
    void open(event_loop& home) noexcept;
    void close() noexcept;
    bool is_open() const noexcept;

    /// Has the device polled soon; from any thread. Rings that come before that are one.
    void ring() noexcept;

    /// The same, and the device fails with `why`, when that is the first.
    void fail(std::exception_ptr why) noexcept;

    /// On the device's thread: why it is to fail, once; else null.
    std::exception_ptr failure() noexcept;

private:
    struct call : work {
        std::shared_ptr<doorbell> self; ///< while it is posted
    };
    void post() noexcept;

    mutable std::mutex mutex_;
    event_loop* home_ = nullptr; ///< which lives while the doorbell is open
    call call_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_ = false; ///< there is a failure to take
};

} // namespace plait::host
