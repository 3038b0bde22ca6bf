#include <plait/apps/chat/console.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace plait::chat {

namespace {

constexpr std::size_t most_input = std::size_t{64} << 20;

} // namespace

std::string console::begin_editing(terminal const* where, std::filesystem::path const& history, bool coloured)
{
    editor_.emplace(*wakers_, *where, history, coloured);
    return editor_->complaint();
}

line_input console::read_line(std::string const& prompt)
{
    return editor_->read(prompt);
}

std::string console::read_all()
{
    std::string all;
    std::string block(std::size_t{64} << 10, '\0');
    while (true) {
        auto const what = wait_for_input(STDIN_FILENO, *wakers_);
        if (what != waited::ready) throw error(errc::cancelled, "standard input");
        auto const got = ::read(STDIN_FILENO, block.data(), block.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) throw error(errc::io, std::string("standard input: ") + std::strerror(errno));
        if (got == 0) break;
        all.append(block, 0, static_cast<std::size_t>(got));
        if (all.size() > most_input) throw error(errc::invalid_argument, "standard input: longer than 64 MiB");
    }
    if (auto const valid = valid_utf8_prefix(all); valid != all.size())
        throw error(errc::invalid_argument, "standard input: not UTF-8 at byte " + std::to_string(valid));
    return all;
}

void console::write(std::string const& text, bool aside)
{
    int const descriptor = aside ? STDERR_FILENO : STDOUT_FILENO;
    char const* const name = aside ? "standard error" : "standard output";
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const what = wait_for_output(descriptor, *wakers_);
        if (what == waited::left) throw error(errc::cancelled, name);
        // A pipe that is ready takes this much without blocking.
        auto const put = ::write(descriptor, rest.data(), std::min(rest.size(), std::size_t{PIPE_BUF}));
        if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (put < 0) throw error(errc::io, std::string(name) + ": " + std::strerror(errno));
        rest.remove_prefix(static_cast<std::size_t>(put));
    }
}

} // namespace plait::chat
