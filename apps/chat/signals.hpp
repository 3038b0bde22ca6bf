#pragma once

#include <plait/actors/actor.hpp>

#include <csignal>
#include <memory>

namespace plait::chat {

class waker;

/// The signals that ask the program to stop (SIGINT, SIGTERM, SIGHUP), turned into something to read. A signal that the
/// program was started to ignore, as in `nohup`, stays ignored. Made before any thread, so that every thread blocks
/// them and none is interrupted.
class stop_signals {
public:
    /// Throws error(errc::io).
    stop_signals();
    ~stop_signals();
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

/// The signals that a line editor has to act on, in the same way: SIGWINCH (another size), SIGTSTP (Ctrl-Z) and
/// SIGCONT. libedit's own handlers would run in whatever thread, and send each signal on to the whole process group.
class terminal_signals {
public:
    /// Before any thread. Throws error(errc::io).
    terminal_signals();
    ~terminal_signals();
    terminal_signals(terminal_signals const&) = delete;
    terminal_signals& operator=(terminal_signals const&) = delete;

    int descriptor() const noexcept { return descriptor_; }
    /// The number of the next one that has come, 0 for none.
    int take() const noexcept;

    /// Whether Ctrl-Z stops the process at once (as it should while nobody edits) or waits to be taken. Decided by the
    /// one thread that calls this.
    void stop_at_once(bool yes) const noexcept;
    /// Does what a Ctrl-Z that was taken is for; returns when the process goes on.
    void stop_process() const noexcept;

private:
    int descriptor_;
};

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
