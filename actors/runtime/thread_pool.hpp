#pragma once

#include <plait/actors/runtime/executor.hpp>
#include <plait/actors/runtime/look_limit.hpp>
#include <plait/actors/runtime/machine_atomics.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace plait::detail {

class watchdog;

/// Several threads that share one queue. Not serial: actors on it are, each by its own queue.
///
/// What a thread of the pool has posted it will come to itself, with the data in its processor's cache. So the others
/// leave it that for some microseconds: actors that send each other messages all the time take half as long on one
/// processor as on two. One thread that has nothing to do watches: when nobody has come to anything for a while, or
/// when there is a lot, or something from elsewhere, all help until the queue is empty. It looks for a short time, then
/// between naps, and sleeps like the others when nobody works.
class thread_pool final : public executor {
public:
    thread_pool(unsigned count, std::string const& name, watchdog* by);
    ~thread_pool() override;

    void post(work& w) noexcept override;
    bool serial() const noexcept override { return false; }

private:
    enum class sight : std::uint8_t { nothing, others_work, help_wanted };

    void serve();
    void wait(std::unique_lock<std::mutex>& lock, look_limit<machine_atomics>& looks);
    void sleep(std::unique_lock<std::mutex>& lock);
    sight watch(std::unique_lock<std::mutex>& lock, look_limit<machine_atomics>& looks);
    sight look(unsigned looks) const noexcept;
    void call_others() noexcept;
    bool all_hands() const noexcept;

    /// Of what is written under the mutex and looked at without it.
    template<class T>
    static void set(std::atomic<T>& shared, std::type_identity_t<T> value) noexcept
    {
        shared.store(value, std::memory_order_relaxed);
    }

    std::mutex mutex_;
    std::condition_variable ready_;
    work_list queue_;
    std::atomic<std::size_t> queued_{0}; ///< works in the queue
    std::atomic<std::size_t> taken_{0};  ///< works that were in it
    std::atomic<bool> help_{false};      ///< everybody takes what is in it
    bool watched_ = false;               ///< a thread watches
    std::size_t asleep_ = 0;             ///< threads that sleep or nap, or have been notified and not yet gone on
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

} // namespace plait::detail
