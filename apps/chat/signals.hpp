#pragma once

#include <plait/actors/actor.hpp>

#include <csignal>
#include <initializer_list>
#include <memory>

namespace plait::chat {

class waker;

/// The signals that ask the program to stop (SIGINT, SIGTERM, SIGHUP) or to show what it is doing (SIGUSR1), turned
/// into something to read. A signal that the program was started to ignore, as in `nohup`, stays ignored. Made before
/// any thread, so that every thread blocks them and none is interrupted.
class held_signals {
public:
    /// Throws error(errc::io).
    held_signals();
    ~held_signals();
    held_signals(held_signals const&) = delete;
    held_signals& operator=(held_signals const&) = delete;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

/// Blocks the signals of `numbers` in this thread, and in those that it will start, and gives them to a descriptor that
/// the caller closes. Throws error(errc::io).
int hold_signals(std::initializer_list<int> numbers);

/// The number of the next signal that has come to such a descriptor, 0 for none.
int next_signal(int descriptor) noexcept;

/// Waits for signals. Blocks the loop it lives on, which is its own.
class signal_source final : public actor {
public:
    signal_source(int descriptor, std::shared_ptr<waker> closing)
        : descriptor_(descriptor)
        , closing_(std::move(closing))
    {
    }

    /// The number of the next signal; 0 once the waker is set.
    int next();

private:
    int descriptor_;
    std::shared_ptr<waker> closing_;
};

} // namespace plait::chat
