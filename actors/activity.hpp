#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace plait {

/// What an actor has done so far, when `runtime_options::counters` asks for it.
struct actor_activity {
    std::string actor;          ///< its type and its number: "cache #3"
    std::uint64_t messages = 0; ///< taken from its mailbox, or called directly
    /// Between sending and taking, of all messages together.
    std::chrono::nanoseconds queued{};
    /// Of all its turns together, with the asks in them that were direct calls.
    std::chrono::nanoseconds ran{};
};

namespace detail {

/// Written on the actor's executor, read from anywhere.
struct actor_counters {
    std::atomic<std::uint64_t> messages{0};
    std::atomic<std::int64_t> queued{0}; ///< nanoseconds
    std::atomic<std::int64_t> ran{0};    ///< nanoseconds
};

} // namespace detail

} // namespace plait
