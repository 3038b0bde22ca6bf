#pragma once

#include <plait/model/chat/chat_template.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait::chat {

/// Who said what. Turns are a person's message and its answer; the system's message, if there is one, is first.
class conversation {
public:
    /// How many tokens a prompt of these messages has.
    using counter = std::function<std::int64_t(std::span<chat_message const>)>;

    /// Sets the system's message, or takes it away; the turns stay.
    void set_system(std::optional<std::string> text);

    /// Forgets the turns, not the system's message.
    void reset() noexcept;

    /// A person's message: a turn begins.
    void ask(std::string text);

    /// Ends it.
    void answer(std::string text);

    /// Takes the turn back that `ask` began.
    void withdraw() noexcept;

    /// Forgets the oldest turns until the prompt leaves `room` of `context` tokens free. The turn that has begun always
    /// stays. Returns how many were forgotten.
    std::size_t make_room(counter const& tokens, std::int64_t context, std::int64_t room);

    std::span<chat_message const> messages() const noexcept { return messages_; }
    /// Turns, the one that has begun included.
    std::size_t turns() const noexcept;

private:
    std::size_t first_turn() const noexcept;

    std::vector<chat_message> messages_;
};

} // namespace plait::chat
