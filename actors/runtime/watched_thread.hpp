#pragma once

#include <plait/actors/time/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait::detail {

/// What one thread is doing, for a watchdog. Its thread writes, the watchdog reads.
class watched_thread {
public:
    /// Whether somebody watches the calling thread.
    static bool watches() noexcept { return current != nullptr; }

    /// While the result lives, the thread is in a turn of that actor. Turns may nest.
    class turn {
    public:
        explicit turn(std::string_view actor) noexcept
            : thread_(current)
            , actor_(actor)
        {
            if (thread_) begin();
        }
        turn(turn const&) = delete;
        turn& operator=(turn const&) = delete;
        ~turn()
        {
            if (thread_) thread_->set(outer_);
        }

        /// The actor takes its next work: what it did so far did not block.
        void goes_on() noexcept
        {
            if (thread_) thread_->set(actor_);
        }

    private:
        void begin() noexcept;

        watched_thread* thread_;
        std::string_view const actor_;
        std::string_view outer_;
    };

private:
    friend class watchdog;

    /// The calling thread's; null when nobody watches it.
    static constinit thread_local watched_thread* current;

    void set(std::string_view actor) noexcept;

    /// Changes with every work of every turn; the name may be read when it was the same before and after.
    std::atomic<std::uint64_t> turns_{0};
    std::atomic<char const*> name_{nullptr};
    std::atomic<std::size_t> length_{0};
    std::uint64_t seen_ = 0; ///< the watchdog's
    duration since_{};
    bool told_ = false;
};

} // namespace plait::detail
