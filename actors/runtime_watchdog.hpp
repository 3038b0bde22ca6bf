#pragma once

#include <plait/actors/blocked.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace plait {

namespace detail {

/// What one thread is doing, for a watchdog. Its thread writes, the watchdog reads.
class watched_thread {
public:
    /// While the result lives, the thread is in a turn of that actor. Turns may nest.
    class turn {
    public:
        explicit turn(std::string_view actor) noexcept;
        turn(turn const&) = delete;
        turn& operator=(turn const&) = delete;
        ~turn();

    private:
        watched_thread* thread_;
        std::string_view outer_;
    };

private:
    friend class watchdog;

    void set(std::string_view actor) noexcept;

    /// Changes with every turn's begin and end; the name may be read when it was the same before and after.
    std::atomic<std::uint64_t> turns_{0};
    std::atomic<char const*> name_{nullptr};
    std::atomic<std::size_t> length_{0};
    std::uint64_t seen_ = 0; ///< the watchdog's
    duration since_{};
    bool told_ = false;
};

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
