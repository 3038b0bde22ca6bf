#pragma once

#include <termios.h>

namespace plait::chat {

/// The terminal that a person types in: its signals, as something to read, and its mode, which is put back in the end.
///
/// The signals are those that a line editor has to act on: SIGWINCH (another size), SIGTSTP (Ctrl-Z) and SIGCONT.
/// libedit's own handlers would run in whatever thread, and send each signal on to the whole process group.
class terminal {
public:
    /// Before any thread. Throws error(errc::io).
    terminal();
    ~terminal();
    terminal(terminal const&) = delete;
    terminal& operator=(terminal const&) = delete;

    int signals() const noexcept { return signals_; }
    /// The number of the next signal that has come, 0 for none.
    int take_signal() const noexcept;

    /// Whether Ctrl-Z stops the process at once (as it should while nobody edits) or waits to be taken. Decided by the
    /// one thread that calls this.
    void stop_at_once(bool yes) const noexcept;
    /// Does what a Ctrl-Z that was taken is for; returns when the process goes on.
    void stop_process() const noexcept;

    /// Between two lines: keys are echoed and wait, as they are, for the next line. With the terminal's own line
    /// editing a Ctrl-D or a half-typed line would be lost on the way. Ctrl-C and Ctrl-Z do what they always do.
    void keep_keys() const noexcept;
    /// Back to how it was.
    void restore() const noexcept;

private:
    int signals_;
    termios before_{};
    bool known_; ///< before_ is
};

} // namespace plait::chat
