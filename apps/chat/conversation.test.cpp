#include <plait/apps/chat/conversation.hpp>

#include <doctest/doctest.h>

using namespace plait;
using plait::chat::conversation;

namespace {

/// Each message costs its length.
std::int64_t letters(std::span<chat_message const> messages)
{
    std::int64_t all = 0;
    for (auto const& m : messages)
        all += static_cast<std::int64_t>(m.content.size());
    return all;
}

conversation three_turns()
{
    conversation talk;
    talk.set_system("sys");
    for (auto const* text : {"aaaa", "bbbb"}) {
        talk.ask(text);
        talk.answer("1234");
    }
    talk.ask("cccc");
    return talk;
}

std::string all_of(conversation const& talk)
{
    std::string out;
    for (auto const& m : talk.messages())
        out += m.role.substr(0, 1) + ":" + m.content + " ";
    return out;
}

} // namespace

TEST_CASE("a conversation that fits loses nothing")
{
    auto talk = three_turns();
    CHECK(talk.make_room(letters, 100, 10) == 0);
    CHECK(talk.make_room(letters, 23 + 10, 10) == 0);
    CHECK(all_of(talk) == "s:sys u:aaaa a:1234 u:bbbb a:1234 u:cccc ");
    CHECK(talk.turns() == 3);
}

TEST_CASE("the oldest turns are forgotten at the context's end, the system's message is not")
{
    auto talk = three_turns();
    CHECK(talk.make_room(letters, 23 + 9, 10) == 1);
    CHECK(all_of(talk) == "s:sys u:bbbb a:1234 u:cccc ");
    CHECK(talk.make_room(letters, 10, 3) == 1);
    CHECK(all_of(talk) == "s:sys u:cccc ");
}

TEST_CASE("the turn that has begun is never forgotten")
{
    auto talk = three_turns();
    CHECK(talk.make_room(letters, 1, 1) == 2);
    CHECK(all_of(talk) == "s:sys u:cccc ");
}

TEST_CASE("turns without an answer are forgotten like others")
{
    conversation talk;
    talk.ask("aaaa");
    talk.ask("bbbb");
    talk.answer("12");
    talk.ask("c");
    CHECK(talk.make_room(letters, 7, 0) == 1);
    CHECK(all_of(talk) == "u:bbbb a:12 u:c ");
}

TEST_CASE("a reset forgets the turns and keeps the system's message")
{
    auto talk = three_turns();
    talk.reset();
    CHECK(all_of(talk) == "s:sys ");
    talk.set_system(std::nullopt);
    CHECK(talk.messages().empty());
    talk.reset();
    CHECK(talk.messages().empty());
}

TEST_CASE("a new system's message takes the old one's place")
{
    auto talk = three_turns();
    talk.set_system("other");
    CHECK(all_of(talk) == "s:other u:aaaa a:1234 u:bbbb a:1234 u:cccc ");
    talk.set_system("");
    CHECK(all_of(talk) == "s: u:aaaa a:1234 u:bbbb a:1234 u:cccc "); // an empty one is one
    talk.set_system(std::nullopt);
    CHECK(all_of(talk) == "u:aaaa a:1234 u:bbbb a:1234 u:cccc ");
}

TEST_CASE("a turn that came to nothing is taken back, one that was answered is not")
{
    auto talk = three_turns();
    talk.withdraw();
    CHECK(all_of(talk) == "s:sys u:aaaa a:1234 u:bbbb a:1234 ");
    talk.withdraw();
    CHECK(all_of(talk) == "s:sys u:aaaa a:1234 u:bbbb a:1234 ");
}
