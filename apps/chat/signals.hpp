#pragma once

#include <plait/actors/actor.hpp>

#include <csignal>
#include <memory>

namespace plait::chat {

class waker;

/// The signals that ask the program to stop (SIGINT, SIGTERM, SIGHUP), turned into something to read. A signal that the
/// program was started to ignore, as in `nohup`, stays ignored.
///
/// Made before any thread, so that every thread blocks them and none is interrupted. With `editing`, the signals that a
/// line editor handles are blocked too, for the console's thread to let through: a handler must not run elsewhere.
class stop_signals {
public:
    /// Throws error(errc::io).
    explicit stop_signals(bool editing);
    ~stop_signals();
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    int descriptor() const noexcept { return descriptor_; }

    /// Lets this thread take the line editor's signals: SIGWINCH, SIGTSTP, SIGCONT.
    static void let_editing_through() noexcept;

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
