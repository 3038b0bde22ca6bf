#pragma once

#include <plait/actors/runtime/event_loop.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace plait::host {

/// Where a device and the groups that it is in reach each other. They wake its loop from other threads, so that it is
/// polled, and tell it that it has failed; and it tells them. They share it, and so it may outlive the device, which
/// closes it.
class doorbell : public std::enable_shared_from_this<doorbell> {
public:
    struct listener {
        virtual ~listener() = default;
        /// The device has failed with `why`, or is going; on its thread.
        virtual void device_failed(doorbell const& of, std::exception_ptr why) noexcept = 0;
    };

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

    /// On the device's thread: `group` is told when the device fails.
    void add(std::weak_ptr<listener> group);
    void tell_failure(std::exception_ptr const& why) noexcept;
    /// Nobody is there to be told.
    bool unheard() const noexcept;

private:
    struct call : work {
        std::shared_ptr<doorbell> self; ///< while it is posted
    };
    void post() noexcept;

    mutable std::mutex mutex_;
    event_loop* home_ = nullptr; ///< which lives while the doorbell is open
    call call_;
    std::vector<std::weak_ptr<listener>> listeners_; ///< touched on the device's thread only
    std::exception_ptr failure_;
    std::atomic<bool> failed_ = false; ///< there is a failure to take
};

} // namespace plait::host
