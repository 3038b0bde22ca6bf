#include <plait/apps/chat/conversation.hpp>

#include <algorithm>
#include <utility>

namespace plait::chat {

namespace {

chat_message message(char const* role, std::string text)
{
    chat_message out;
    out.role = role;
    out.content = std::move(text);
    return out;
}

} // namespace

std::size_t conversation::first_turn() const noexcept
{
    return !messages_.empty() && messages_.front().role == "system" ? 1 : 0;
}

void conversation::set_system(std::optional<std::string> text)
{
    if (first_turn() == 1) messages_.erase(messages_.begin());
    if (text) messages_.insert(messages_.begin(), message("system", std::move(*text)));
}

void conversation::reset() noexcept
{
    messages_.resize(first_turn());
}

void conversation::ask(std::string text)
{
    messages_.push_back(message("user", std::move(text)));
}

void conversation::answer(std::string text)
{
    messages_.push_back(message("assistant", std::move(text)));
}

void conversation::withdraw() noexcept
{
    if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
}

std::size_t conversation::make_room(counter const& tokens, std::int64_t context, std::int64_t room)
{
    std::size_t forgotten = 0;
    while (turns() > 1 && tokens(messages_) + room > context) {
        auto const from = messages_.begin() + static_cast<std::ptrdiff_t>(first_turn());
        auto const next = std::find_if(from + 1, messages_.end(), [](auto const& m) { return m.role == "user"; });
        messages_.erase(from, next);
        ++forgotten;
    }
    return forgotten;
}

std::size_t conversation::turns() const noexcept
{
    return static_cast<std::size_t>(
        std::count_if(messages_.begin(), messages_.end(), [](auto const& m) { return m.role == "user"; }));
}

} // namespace plait::chat
