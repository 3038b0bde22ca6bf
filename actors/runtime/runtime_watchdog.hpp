#pragma once

#include <plait/actors/runtime/blocked.hpp>
#include <plait/actors/runtime/watched_thread.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace plait {

namespace detail {

/// Looks from time to time whether a thread is still in the same actor's turn, and tells when that takes too long. It
/// has a thread, and the threads that it watches pay a few stores for each turn.
class watchdog {
public:
    watchdog(duration longest_turn, std::function<void(blocked const&)> tell);
    watchdog(watchdog const&) = delete;
    watchdog& operator=(watchdog const&) = delete;
    ~watchdog();

    /// Watches the calling thread while the result lives. Null watches nothing.
    class guard {
    public:
        explicit guard(watchdog* by);
        guard(guard const&) = delete;
        guard& operator=(guard const&) = delete;
        ~guard();

    private:
        watchdog* by_;
        watched_thread thread_;
    };

private:
    void watch();
    void look(watched_thread& t, duration now);

    duration const longest_turn_;
    std::function<void(blocked const&)> const tell_;
    std::mutex mutex_;
    std::condition_variable ending_changed_;
    bool ending_ = false;
    std::vector<watched_thread*> threads_;
    std::thread thread_;
};

} // namespace detail

} // namespace plait
