#pragma once

#include <plait/apps/chat/waker.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace plait::chat {

class terminal;

/// What became of a line that was asked for.
struct line_input {
    enum class ending : std::uint8_t {
        complete,    ///< `text` is the line
        end,         ///< of the input (Ctrl-D)
        interrupted, ///< Ctrl-C, with something typed
        abandoned,   ///< Ctrl-C with nothing typed
        left,        ///< wakers::leave
    };
    ending how = ending::end;
    std::string text; ///< UTF-8, without its end of line
};

/// Reads lines from a terminal with editing and a history, by libedit. Made and used by one thread, which Ctrl-Z stops
/// unless it reads.
class line_editor {
public:
    /// The history is read from `history` and every line added to it; an empty path: it is not kept. Throws
    /// error(errc::io) where the terminal cannot be used. A file that cannot be used is no failure: see complaint().
    line_editor(wakers& by, terminal const& where, std::filesystem::path const& history, bool coloured);
    ~line_editor();

    line_input read(std::string const& prompt);

    /// Why the history is not kept; empty where it is.
    std::string const& complaint() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

/// Where the history is kept: plait/history in $XDG_STATE_HOME, else in ~/.local/state; empty without a home.
std::filesystem::path history_file();

} // namespace plait::chat
