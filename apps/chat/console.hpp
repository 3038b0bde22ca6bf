#pragma once

#include <plait/actors/actor.hpp>
#include <plait/apps/chat/line_editor.hpp>
#include <plait/apps/chat/waker.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace plait::chat {

/// Standard input and output. Every method may block, so it lives on a loop of its own: neither a person who types nor
/// a pipe that nobody reads holds up anything else. What blocks gives up when wakers::leave is set.
class console final : public actor {
public:
    explicit console(std::shared_ptr<wakers> by)
        : wakers_(std::move(by))
    {
    }

    /// Gets ready to read lines from the terminal. `where` outlives this. Returns why there is no
    /// history, or nothing. Throws error(errc::io).
    std::string begin_editing(terminal const* where, std::filesystem::path const& history, bool coloured);

    /// The next line of the terminal. Editing has begun.
    line_input read_line(std::string const& prompt);

    /// Standard input to its end. Throws error(errc::io) where it cannot be read, error(errc::invalid_argument) where
    /// it is not UTF-8 (naming the byte) or longer than 64 MiB, error(errc::cancelled) after wakers::leave.
    std::string read_all();

    /// Writes all of `text`, now, to standard output or, with `aside`, to standard error. Throws error(errc::io), and
    /// error(errc::cancelled) after wakers::leave.
    void write(std::string const& text, bool aside);

private:
    std::shared_ptr<wakers> wakers_;
    std::optional<line_editor> editor_;
};

} // namespace plait::chat
