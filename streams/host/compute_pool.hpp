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
/// thread is worker 0. An operation has one share for each worker and ends when the last share is done. Who comes first
/// takes the next one: a worker that the system keeps from running holds nobody up, another does its share too.
///
/// Between the operations of a step the workers spin, because the next one is some hundred nanoseconds away; when none
/// comes they park, and an idle process uses no processor time.
class compute_pool {
public:
    /// Starts `workers - 1` threads of `home`. `workers` >= 1, and 1 where `home` has no threads (a simulation, an
    /// asio_runtime), else error(errc::invalid_argument).
    compute_pool(runtime& home, unsigned workers);
    ~compute_pool();
    compute_pool(compute_pool const&) = delete;
    compute_pool& operator=(compute_pool const&) = delete;

    using operation = void (*)(void const* arguments, share part);

    /// Runs every share of `op`, the caller being worker 0, and returns when all have returned. Callers on several
    /// threads take turns. An operation must not throw.
    void run(operation op, void const* arguments) noexcept;

    unsigned workers() const noexcept { return count_; }

private:
    class member;

    void end() noexcept;

    // One operation is published at a time. Worker 0 writes operation_ and arguments_, stores 0 to next_ (release), and
    // adds 1 to epoch_, which wakes the workers. Whoever adds 1 to next_ (acquire) and finds less than count_ has taken
    // that share, runs it, and adds 1 to done_ (release). Worker 0 waits until done_ is count_ (acquire) before it
    // publishes the next, so what a taken share reads stays; a worker that comes late, from whatever epoch, takes what
    // is left or nothing.
    alignas(64) std::atomic<std::uint32_t> epoch_ = 0;
    alignas(64) std::atomic<std::uint32_t> next_ = 0;
    alignas(64) std::atomic<std::uint32_t> done_ = 0;
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
