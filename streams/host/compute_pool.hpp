#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <plait/streams/share.hpp>

namespace plait {
class event_loop;
class runtime;
} // namespace plait

namespace plait::host {

/// The threads that carry out host operations: one pool a process, shared by every host device in it. The device's own
/// thread is worker 0. An operation runs on all workers and ends when the last has done its share.
///
/// Between the operations of a step the workers spin, because the next one is some hundred nanoseconds away; when none
/// comes they park, and an idle process uses no processor time.
class compute_pool {
public:
    /// Starts `workers - 1` threads of `home`. `workers` >= 1, else error(errc::invalid_argument).
    compute_pool(runtime& home, unsigned workers);
    ~compute_pool();
    compute_pool(compute_pool const&) = delete;
    compute_pool& operator=(compute_pool const&) = delete;

    using operation = void (*)(void const* arguments, share part);

    /// Runs `op` on every worker, the caller being worker 0, and returns when all have returned. Callers on several
    /// threads take turns. An operation must not throw.
    void run(operation op, void const* arguments) noexcept;

    unsigned workers() const noexcept { return count_; }

private:
    class member;

    // One operation is published at a time. Worker 0 writes operation_ and arguments_, then adds 1 to epoch_ (release);
    // a worker that sees a new epoch (acquire) runs its share and adds 1 to arrived_ (release); worker 0 waits until
    // arrived_ reaches count_ - 1 (acquire) before it publishes the next. epoch_ == closing ends the workers.
    alignas(64) std::atomic<std::uint32_t> epoch_ = 0;
    alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
    /// Workers that have left their loop. Each holds it too: a worker's last act is to notify, when the pool that waits
    /// for it may already be gone.
    std::shared_ptr<std::atomic<std::uint32_t>> gone_ = std::make_shared<std::atomic<std::uint32_t>>(0);
    operation operation_ = nullptr;
    void const* arguments_ = nullptr;
    std::atomic<bool> closing_ = false;

    unsigned count_;
    std::mutex turn_;
    std::vector<std::unique_ptr<member>> members_;
    std::vector<std::shared_ptr<event_loop>> loops_; ///< of all but worker 0
};

} // namespace plait::host
