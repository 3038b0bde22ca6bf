#include <plait/model/text/text_stream.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/tests/support/vocabulary.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace plait;
using test::vocabulary_builder;

namespace {

using ids = std::vector<std::int32_t>;

/// Tokens whose bytes are given, beside those of the 256 bytes and an end token.
struct source {
    explicit source(std::vector<std::string> const& pieces = {})
    {
        vocabulary_builder b;
        for (auto const& piece : pieces) {
            if (piece.size() > 1) b.add(test::spell(piece), token_type::normal);
        }
        end = b.add("<|im_end|>", token_type::control);
        b.value().eos = end;
        made.emplace(b.value());
    }
    std::int32_t operator()(std::string_view piece) const { return *made->find(piece); }

    std::optional<tokenizer> made;
    std::int32_t end = 0;
};

struct step {
    std::string text;
    std::size_t tokens;
    bool operator==(step const&) const = default;
};

std::ostream& operator<<(std::ostream& out, step const& s)
{
    return out << '"' << s.text << "\"/" << s.tokens;
}

step of(text_stream::update const& u)
{
    return {u.text, u.tokens};
}

} // namespace

TEST_CASE("text comes as soon as its characters are whole")
{
    source const t({"hello", "\xE4\xBD", "\xA0\xE5", "\xA5\xBD!"});
    text_stream s(*t.made);
    CHECK(of(s.push(t("hello"))) == step{"hello", 1});
    CHECK(of(s.push(t("\xE4\xBD"))) == step{"", 0});
    CHECK(of(s.push(t("\xA0\xE5"))) == step{"你", 1});
    CHECK(of(s.push(t("\xA5\xBD!"))) == step{"好!", 2});
    CHECK(of(s.flush()) == step{"", 0});
    CHECK(!s.stopped());
}

TEST_CASE("an emoji of four single bytes comes with its last one")
{
    source const t;
    text_stream s(*t.made);
    CHECK(of(s.push(0xF0)) == step{"", 0});
    CHECK(of(s.push(0x9F)) == step{"", 0});
    CHECK(of(s.push(0x98)) == step{"", 0});
    CHECK(of(s.push(0x80)) == step{"😀", 4});
}

TEST_CASE("bytes that can't become a character are U+FFFD at once, an incomplete tail at the end")
{
    source const t;
    text_stream s(*t.made);
    CHECK(of(s.push(0xFF)) == step{"\uFFFD", 1});
    CHECK(of(s.push(0xE4)) == step{"", 0});
    CHECK(of(s.push('x')) == step{"\uFFFDx", 2});
    CHECK(of(s.push(0xF0)) == step{"", 0});
    CHECK(of(s.push(0x9F)) == step{"", 0});
    CHECK(of(s.flush()) == step{"\uFFFD", 2});
}

TEST_CASE("control tokens have no text unless asked for")
{
    source const t;
    text_stream hidden(*t.made);
    CHECK(of(hidden.push(t.end)) == step{"", 1});
    CHECK(of(hidden.push(0xE4)) == step{"", 0});
    CHECK(of(hidden.push(t.end)) == step{"", 0});
    CHECK(of(hidden.push(0xBD)) == step{"", 0});
    CHECK(of(hidden.push(0xA0)) == step{"你", 4});
    text_stream shown(*t.made, {.stops = {}, .skip_special = false});
    CHECK(of(shown.push(t.end)) == step{"<|im_end|>", 1});
}

TEST_CASE("a stop string across tokens ends the text before it")
{
    source const t({"one ", "tw", "o ST", "OP", " three"});
    text_stream s(*t.made, {.stops = {"never", "STOP"}});
    CHECK(of(s.push(t("one "))) == step{"one ", 1});
    CHECK(of(s.push(t("tw"))) == step{"tw", 1});
    CHECK(of(s.push(t("o ST"))) == step{"o ", 0});
    // The token that the stop string cuts counts: a part of it was shown. The one inside the stop string does not.
    CHECK(of(s.push(t("OP"))) == step{"", 1});
    CHECK(s.stopped() == 1);
    CHECK(of(s.push(t(" three"))) == step{"", 0});
    CHECK(of(s.flush()) == step{"", 0});
}

TEST_CASE("what turned out not to be a stop string comes late but whole")
{
    source const t({"a<", "/", "s", "x"});
    text_stream s(*t.made, {.stops = {"</s>"}});
    CHECK(of(s.push(t("a<"))) == step{"a", 0});
    CHECK(of(s.push(t("/"))) == step{"", 0});
    CHECK(of(s.push(t("s"))) == step{"", 0});
    CHECK(of(s.push(t("x"))) == step{"</sx", 4});
    CHECK(of(s.push(t("/"))) == step{"/", 1});
    CHECK(of(s.push(t("a<"))) == step{"a", 0});
    CHECK(of(s.flush()) == step{"<", 1});
}

TEST_CASE("a stop string may start and end inside tokens, and inside characters")
{
    source const t({"x好\xE4", "\xBD", "\xA0好y"});
    text_stream s(*t.made, {.stops = {"你好"}});
    CHECK(of(s.push(t("x好\xE4"))) == step{"x好", 0});
    CHECK(of(s.push(t("\xBD"))) == step{"", 0});
    CHECK(of(s.push(t("\xA0好y"))) == step{"", 1});
    CHECK(s.stopped() == 0);
}

TEST_CASE("a token with a stop string in its middle gives what is before it")
{
    source const t({"yes\n\nUser: no"});
    text_stream s(*t.made, {.stops = {"\n\nUser:"}});
    CHECK(of(s.push(t("yes\n\nUser: no"))) == step{"yes", 1});
    text_stream at_once(*t.made, {.stops = {"yes"}});
    CHECK(of(at_once.push(t("yes\n\nUser: no"))) == step{"", 0});
    CHECK(at_once.stopped() == 0);
}

TEST_CASE("bad stop strings and unknown tokens are refused")
{
    source const t;
    CHECK_THROWS_AS(text_stream(*t.made, {.stops = {""}}), error);
    CHECK_THROWS_AS(text_stream(*t.made, {.stops = {"a", "\xFF"}}), error);
    text_stream s(*t.made);
    CHECK_THROWS_AS(s.push(-1), error);
    CHECK_THROWS_AS(s.push(100'000), error);
    CHECK(of(s.push('a')) == step{"a", 1});
}

TEST_CASE("any tokens and any stop strings give what the whole text gives")
{
    // Few different bytes, so that stop strings occur, cut characters meet, and ill-formed sequences abound.
    std::vector<std::string> pieces{"\xE4\xBD", "\xA0", "\xE4\xBD\xA0", "\xA0\xE4", "a\xE4",
                                    "ab",       "ba",   "\xF0",         "你a",      "b你"};
    source const t(pieces);
    pieces.insert(pieces.end(), {"a", "b", "\xE4", "\xBD"});
    std::vector<std::string> const words{"a", "b", "你", "ab", "aba", "你a", "b你你", "\uFFFD", "a\uFFFD"};
    std::mt19937 random(9);
    std::size_t wrong = 0, stopped = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::string> stops(random() % 3);
        for (auto& stop : stops)
            stop = words[random() % words.size()] + words[random() % words.size()];
        ids tokens(1 + random() % 20);
        std::string bytes;
        for (auto& token : tokens) {
            auto const& piece = pieces[random() % pieces.size()];
            token = random() % 12 == 0 ? t.end : t(piece);
            if (token != t.end) bytes += piece;
        }
        auto const whole = replace_invalid_utf8(bytes);
        std::string expected;
        stop_matcher reference(stops);
        reference.push(whole, expected);
        reference.finish(expected);

        text_stream s(*t.made, {.stops = stops});
        std::string text;
        std::size_t counted = 0;
        auto const take = [&](text_stream::update const& u) {
            text += u.text;
            counted += u.tokens;
            if (!is_utf8(u.text)) ++wrong;
        };
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            take(s.push(tokens[i]));
            // A token counts only once all its text is out: the counted ones alone have no more than that.
            std::string prefix;
            for (std::size_t k = 0; k < counted; ++k) {
                if (tokens[k] != t.end) prefix += t.made->piece(tokens[k]);
            }
            if (!s.stopped() && prefix.size() > 0 && text.size() < replace_invalid_utf8(prefix).size()) ++wrong;
            if (counted > i + 1) ++wrong;
        }
        take(s.flush());
        if (text != expected || s.stopped().has_value() != reference.matched().has_value()) ++wrong;
        if (!s.stopped() && counted != tokens.size()) ++wrong;
        stopped += s.stopped().has_value();
    }
    CHECK(wrong == 0);
    CHECK(stopped > 1000);
}

TEST_CASE("control tokens have text where they are asked for, one by one")
{
    vocabulary_builder b;
    auto const open = b.add("<open>", token_type::control);
    auto const other = b.add("<other>", token_type::control);
    b.value().eos = other;
    tokenizer const t(b.value());
    text_stream plain(t);
    CHECK(of(plain.push(open)) == step{"", 1});
    text_stream s(t, {{"n>a"}, true, {open}});
    CHECK(of(s.push('x')) == step{"x", 1});
    CHECK(of(s.push(other)) == step{"", 1});
    CHECK(of(s.push(open)) == step{"<ope", 0}); // they can be part of a stop string, as any text
    CHECK(of(s.push('a')) == step{"", 1});
    CHECK(s.stopped() == 0);
}
