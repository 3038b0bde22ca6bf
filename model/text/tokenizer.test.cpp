#include <plait/model/text/tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/vocabulary.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace plait;
using test::small_vocabulary;
using test::vocabulary_builder;

namespace {

using ids = std::vector<std::int32_t>;

std::int32_t id(tokenizer const& t, std::string_view bytes)
{
    auto const found = t.find(bytes);
    REQUIRE_MESSAGE(found.has_value(), std::string(bytes));
    return *found;
}

/// What the constructor says about a vocabulary that it must refuse.
std::string refusal(vocabulary const& v, errc code = errc::bad_file)
{
    try {
        tokenizer const t(v);
    } catch (error const& e) {
        CHECK(e.condition() == code);
        return e.what();
    }
    FAIL("accepted");
    return {};
}

bool mentions(std::string const& text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

/// Scalars of every kind that a tokenizer treats differently.
std::string random_text(std::mt19937& random, std::size_t length)
{
    static std::string const common = "hello world aaaa  \n\t12'sll<>|_";
    std::string out;
    while (out.size() < length) {
        switch (random() % 6) {
        case 0:
            append_utf8(out, static_cast<char32_t>(random() % 0x80));
            break;
        case 1:
            append_utf8(out, static_cast<char32_t>(0x80 + random() % 0xD700));
            break;
        case 2:
            append_utf8(out, static_cast<char32_t>(0x10000 + random() % 0x100000));
            break;
        case 3:
            out += random() % 2 ? "<|im_end|>" : "<tool>";
            break;
        default:
            out += common[random() % common.size()];
        }
    }
    return out;
}

} // namespace

TEST_CASE("text is cut into pieces and each piece merged")
{
    tokenizer const t(small_vocabulary());
    CHECK(t.encode("hello") == ids{id(t, "hello")});
    CHECK(t.encode("hello world") == ids{id(t, "hello"), id(t, " w"), id(t, "or"), 'l', 'd'});
    CHECK(t.encode("hell o") == ids{id(t, "hell"), ' ', 'o'});
    CHECK(t.encode("aaaaaaa") == ids{id(t, "aaaa"), id(t, "aa"), 'a'});
    CHECK(t.encode("").empty());
    CHECK(t.encode(std::string_view("\0", 1)) == ids{0});
}

TEST_CASE("a token may hold a part of a character")
{
    tokenizer const t(small_vocabulary());
    CHECK(t.encode("你") == ids{id(t, "\xE4\xBD"), 0xA0});
    CHECK(t.piece(id(t, "\xE4\xBD")) == "\xE4\xBD");
    CHECK(t.decode(t.encode("你好")) == "你好");
}

TEST_CASE("well-formed text comes back byte for byte")
{
    std::mt19937 random(11);
    std::size_t wrong = 0;
    for (auto const* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-coder", "deepseek-v3"}) {
        auto v = small_vocabulary();
        v.pre = pre;
        tokenizer const t(v);
        for (int round = 0; round < 200; ++round) {
            // Long texts go through the memory of pieces, short ones don't.
            auto const text = random_text(random, round % 10 == 0 ? 6000 : 60);
            for (bool const parse : {false, true}) {
                if (t.decode(t.encode(text, {.parse_special = parse})) != text) ++wrong;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("remembered pieces give the tokens that the pieces give alone")
{
    tokenizer const t(small_vocabulary());
    std::mt19937 random(12);
    ids expected;
    std::string text;
    for (int i = 0; i < 3000; ++i) {
        std::string const word = "w" + std::string(random() % 4, 'a') + std::string(random() % 3, 'l');
        auto const alone = t.encode(" " + word);
        expected.insert(expected.end(), alone.begin(), alone.end());
        text += " " + word;
    }
    CHECK(t.encode(text) == expected);
}

TEST_CASE("ill-formed UTF-8 is encoded as U+FFFD")
{
    tokenizer const t(small_vocabulary());
    for (std::string const text : {"a\x80z", "\xE4\xBD", "hello\xF0\x9F\x98 world", "\xFF\xFE", "\xED\xA0\x80"}) {
        CHECK(t.encode(text) == t.encode(replace_invalid_utf8(text)));
        CHECK(t.decode(t.encode(text)) == replace_invalid_utf8(text));
    }
    CHECK(t.encode("\xFF") == ids{0xEF, 0xBF, 0xBD});
}

TEST_CASE("control tokens are found in text only where asked, user-defined ones always")
{
    tokenizer const t(small_vocabulary());
    auto const end = id(t, "<|im_end|>");
    auto const tool = id(t, "<tool>");
    CHECK(t.encode("a<|im_end|>b", {.parse_special = true}) == ids{'a', end, 'b'});
    auto const plain = t.encode("a<|im_end|>b");
    CHECK(std::find(plain.begin(), plain.end(), end) == plain.end());
    CHECK(t.decode(plain) == "a<|im_end|>b");
    CHECK(t.encode("a<tool>b") == ids{'a', tool, 'b'});
    CHECK(t.encode("<tool><|im_end|><tool>", {.parse_special = true}) == ids{tool, end, tool});
    CHECK(t.encode("<|im_end|", {.parse_special = true}).size() == 9);
    // Two spaces are cut out before "world" can take one of them.
    CHECK(t.encode("x   w") == ids{'x', id(t, "  "), id(t, " w")});
}

TEST_CASE("of the added tokens that start at the leftmost place the longest is taken")
{
    vocabulary_builder b;
    auto const ab = b.add("<a><b>", token_type::user_defined);
    auto const a = b.add("<a>", token_type::user_defined);
    auto const long_control = b.add("<a><b><c>", token_type::control);
    auto const bcd = b.add("><b><c><d>", token_type::user_defined);
    tokenizer const t(b.value());
    CHECK(t.encode("<a><b>") == ids{ab});
    CHECK(t.encode("<a><x") == ids{a, '<', 'x'});
    CHECK(t.encode("<a><b><c>") == ids{ab, '<', 'c', '>'});
    CHECK(t.encode("<a><b><c>", {.parse_special = true}) == ids{long_control});
    CHECK(t.encode("<a><b><c><d>") == ids{ab, '<', 'c', '>', '<', 'd', '>'});
    CHECK(t.encode("x><b><c><d>") == ids{'x', bcd});
}

TEST_CASE("plain text never becomes a control token, whatever the merges say")
{
    vocabulary_builder b;
    b.value().merges = {"< s", "<s >", "/ s"};
    b.add("<s", token_type::normal);
    b.add("<s>", token_type::control);
    b.add("/s", token_type::normal);
    tokenizer const t(b.value());
    CHECK(t.decode(t.encode("<s>")) == "<s>");
    for (auto const token : t.encode("<s> </s> <s>"))
        CHECK(!t.is_special(token));
}

TEST_CASE("decoding writes control tokens out or leaves them out")
{
    tokenizer const t(small_vocabulary());
    ids const tokens{*t.bos(), 'h', id(t, "<tool>"), *t.eos()};
    CHECK(t.decode(tokens) == "<|start|>h<tool><|im_end|>");
    CHECK(t.decode(tokens, {.skip_special = true}) == "h<tool>");
    CHECK(t.decode({}) == "");
    for (std::int32_t const bad : {-1, static_cast<std::int32_t>(t.size()), INT32_MAX, INT32_MIN}) {
        CHECK_THROWS_AS(t.decode(std::vector{bad}), error);
        CHECK_THROWS_AS(t.piece(bad), error);
        CHECK_THROWS_AS(t.is_special(bad), error);
        CHECK(!t.ends_generation(bad));
    }
}

TEST_CASE("begin and end tokens are added where the file wants them")
{
    auto v = small_vocabulary();
    CHECK(tokenizer(v).encode("h", {.add_special = true}) == ids{'h'});
    v.add_bos = true;
    CHECK(tokenizer(v).encode("h", {.add_special = true}) == ids{static_cast<std::int32_t>(*v.bos), 'h'});
    CHECK(tokenizer(v).encode("h") == ids{'h'});
    v.add_eos = true;
    CHECK(tokenizer(v).encode("", {.add_special = true}).size() == 2);
    // Llama 3's files do not say, and mean yes.
    v.add_bos.reset();
    v.pre = "llama-bpe";
    CHECK(tokenizer(v).adds_bos());
    v.add_bos = false;
    CHECK(!tokenizer(v).adds_bos());
    v.add_bos.reset();
    v.bos.reset();
    CHECK(!tokenizer(v).adds_bos());
    CHECK(!tokenizer(v).bos().has_value());
}

TEST_CASE("a rule that prefers whole pieces takes them from the vocabulary without merges")
{
    vocabulary_builder b("llama-bpe");
    auto const word = b.add("word", token_type::normal);
    b.add("ctrl", token_type::control);
    CHECK(tokenizer(b.value()).encode("word") == ids{word});
    CHECK(tokenizer(b.value()).encode("ctrl") == ids{'c', 't', 'r', 'l'});
    b.value().pre = "qwen2";
    CHECK(tokenizer(b.value()).encode("word") == ids{'w', 'o', 'r', 'd'});
}

TEST_CASE("bytes without a token are left out, and only they")
{
    auto v = small_vocabulary();
    v.tokens[0x04] = "[pad-4]";
    v.tokens[0xF1] = "[pad-f1]";
    tokenizer const t(v);
    CHECK(!t.covers(0x04));
    CHECK(t.covers(0x05));
    CHECK(t.encode("!\x04!") == ids{'!', '!'});
    CHECK(t.encode("\x04").empty());
    CHECK(t.decode(t.encode("hel\x04lo \U00040001.")) == "hello \x80\x80\x81.");
}

TEST_CASE("a normal token that is not in the byte alphabet stands for its own text")
{
    vocabulary_builder b;
    auto const raw = b.add("你好 raw", token_type::normal);
    tokenizer const t(b.value());
    CHECK(t.piece(raw) == "你好 raw");
}

TEST_CASE("the tokens that end an answer come from the file's ids and from well-known names")
{
    vocabulary_builder b;
    auto const turn = b.add("<|im_end|>", token_type::control);
    auto const text = b.add("<|endoftext|>", token_type::user_defined);
    auto const named = b.add("<stop-here>", token_type::control);
    auto const message = b.add("<message-end>", token_type::control);
    b.add("<|eot_id|>", token_type::unused);
    b.add("<|im_start|>", token_type::control);
    b.value().eos = named;
    b.value().end_of_message = message;
    tokenizer const t(b.value());
    auto const all = t.end_of_generation();
    CHECK(ids(all.begin(), all.end()) == ids{turn, text, named, message});
    CHECK(t.ends_generation(turn));
    CHECK(!t.ends_generation('x'));
    // A turn marker that the file lists as user-defined must not be found in a user's text.
    CHECK(t.is_special(text));
    CHECK(t.encode("<|endoftext|>").size() > 1);
}

TEST_CASE("in the harmony format the end of a message does not end the answer")
{
    vocabulary_builder b;
    auto const end = b.add("<|end|>", token_type::control);
    CHECK(tokenizer(b.value()).ends_generation(end));
    b.add("<|return|>", token_type::control);
    b.add("<|call|>", token_type::control);
    CHECK(!tokenizer(b.value()).ends_generation(end));
    b.value().eos = end;
    CHECK(tokenizer(b.value()).ends_generation(end));
}

TEST_CASE("a vocabulary that contradicts itself is refused with the field's name")
{
    auto const good = small_vocabulary();
    CHECK_NOTHROW(tokenizer{good});
    auto v = good;

    v.tokens.clear();
    v.types.clear();
    CHECK(mentions(refusal(v), "tokenizer.ggml.tokens"));

    v = good;
    v.types.pop_back();
    CHECK(mentions(refusal(v), "tokenizer.ggml.token_type"));

    v = good;
    v.types[7] = 99;
    CHECK(mentions(refusal(v), "token_type[7]"));

    v = good;
    v.tokens[300 - 40] = "\xC3\x28";
    CHECK(mentions(refusal(v), "tokens[260]: not UTF-8"));

    v = good;
    v.tokens[261] = v.tokens[65];
    auto const same = refusal(v);
    CHECK(mentions(same, "tokens[261]"));
    CHECK(mentions(same, "tokens[65]"));

    // A control token may share a piece's text; two of them may not.
    v = good;
    v.tokens.push_back("h");
    v.types.push_back(static_cast<std::int32_t>(token_type::control));
    CHECK(tokenizer(v).encode("h") == ids{'h'});
    v.tokens.push_back("h");
    v.types.push_back(static_cast<std::int32_t>(token_type::control));
    CHECK(mentions(refusal(v), "the same text as"));

    v = good;
    v.tokens['k'] = "[none]";
    CHECK(mentions(refusal(v), "'k'"));

    v = good;
    v.merges[1] = "zz h";
    CHECK(mentions(refusal(v), "merges[1]"));
    v.merges[1] = "h zz";
    CHECK(mentions(refusal(v), "zz"));
    v.merges[1] = "z z"; // both pieces exist, what they make does not
    CHECK(mentions(refusal(v), "merges[1]"));
    for (auto const* broken : {"", " ", "h", "h ", " h", "\xFF e"}) {
        v.merges[1] = broken;
        CHECK(mentions(refusal(v), "merges[1]"));
    }

    for (auto const id : {std::int64_t{-1}, static_cast<std::int64_t>(good.tokens.size()), std::int64_t{1} << 40}) {
        v = good;
        v.bos = id;
        CHECK(mentions(refusal(v), "bos_token_id"));
        v = good;
        v.eos = id;
        CHECK(mentions(refusal(v), "eos_token_id"));
        v = good;
        v.end_of_turn = id;
        CHECK(mentions(refusal(v), "eot_token_id"));
        v = good;
        v.end_of_message = id;
        CHECK(mentions(refusal(v), "eom_token_id"));
        v = good;
        v.unknown = id;
        CHECK(mentions(refusal(v), "unknown_token_id"));
        v = good;
        v.padding = id;
        CHECK(mentions(refusal(v), "padding_token_id"));
    }

    v = good;
    v.bos.reset();
    v.add_bos = true;
    CHECK(mentions(refusal(v), "add_bos_token"));
    v = good;
    v.eos.reset();
    v.add_eos = true;
    CHECK(mentions(refusal(v), "add_eos_token"));
}

TEST_CASE("merges that lead back to each other's pieces come to an end")
{
    vocabulary_builder b;
    b.merge("a", "b");
    b.merge("b", "a");
    b.merge("ab", "a");
    b.merge("b", "ab");
    b.merge("ab", "ab");
    b.merge("ba", "ba");
    auto v = b.value();
    for (auto const* other : {"a ba", "ba b", "aba b", "a bab", "bab a", "b aba"})
        v.merges.emplace_back(other);
    // Given again, the other way round: an earlier rule counts, and every rule makes a longer piece than its parts.
    auto const again = v.merges;
    v.merges.insert(v.merges.end(), again.rbegin(), again.rend());
    tokenizer const t(v);
    for (std::size_t const length : {1u, 2u, 3u, 7u, 8u, 100u, 5000u}) {
        std::string text;
        while (text.size() < length)
            text += text.size() % 2 == 0 ? 'a' : 'b';
        auto const got = t.encode(text);
        CHECK(t.decode(got) == text);
        CHECK(got.size() <= length / 4 + 2);
    }
}

TEST_CASE("pieces of a SentencePiece vocabulary in a GGUF file that make no sense are refused by their place")
{
    vocabulary good;
    good.model = "llama";
    good.tokens = {"<unk>", "<s>", "</s>", "<0x20>", "<0xFF>", "\u2581", "a", "b", "ab"};
    good.types = {2, 3, 3, 6, 6, 1, 1, 1, 1};
    good.scores.assign(good.tokens.size(), -1.0f);
    CHECK(tokenizer(good).encode("ab").size() > 1);

    auto v = good;
    for (auto const* name : {"<0x100>", "<0x-1>", "<0xG0>", "<0x0>", "0x41", "", "<0x41", "<0X41>", "<0x 1>"}) {
        v.tokens[3] = name;
        CHECK(mentions(refusal(v), "tokens[3]: a byte token that is none of <0x00> to <0xFF>"));
    }
    v = good;
    v.scores.pop_back();
    CHECK(mentions(refusal(v), "scores: 8 entries for 9 tokens"));
    v.scores.assign(10, -1.0f);
    CHECK(mentions(refusal(v), "scores: 10 entries for 9 tokens"));
    v.scores.clear();
    CHECK(mentions(refusal(v), "scores: 0 entries for 9 tokens"));
    v = good;
    for (float const value : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
        v.scores[6] = value;
        CHECK(mentions(refusal(v), "scores[6]: not a finite number"));
    }
    v = good;
    v.types.push_back(1);
    CHECK(mentions(refusal(v), "token_type: 10 entries for 9 tokens"));
    v = good;
    v.tokens[7] = "a";
    CHECK(mentions(refusal(v), "tokens[7]: the same text as tokenizer.ggml.tokens[6]"));
    v = good;
    v.tokens[8] = "a\xED\xA0\x80";
    CHECK(mentions(refusal(v), "tokens[8]: not UTF-8"));
    v = good;
    v.tokens[8] = std::string(5000, 'a');
    CHECK(mentions(refusal(v, errc::unsupported), "tokens[8]: a piece of 5000 bytes"));
}

TEST_CASE("an algorithm or a rule that is not known is unsupported, by name")
{
    auto v = small_vocabulary();
    v.model = "bert";
    auto const model = refusal(v, errc::unsupported);
    CHECK(mentions(model, "tokenizer.ggml.model"));
    CHECK(mentions(model, "bert"));
    v = small_vocabulary();
    v.pre = "never-heard-of";
    CHECK(mentions(refusal(v, errc::unsupported), "never-heard-of"));
}

TEST_CASE("empty tokens pad a vocabulary and never come out of text")
{
    auto v = small_vocabulary();
    for (int i = 0; i < 3; ++i) {
        v.tokens.emplace_back();
        v.types.push_back(static_cast<std::int32_t>(i == 0 ? token_type::control : token_type::user_defined));
    }
    tokenizer const t(v);
    CHECK(t.encode("hello", {.parse_special = true}) == ids{id(t, "hello")});
    CHECK(t.piece(static_cast<std::int32_t>(t.size()) - 1).empty());
}

TEST_CASE("threads share a tokenizer")
{
    tokenizer const t(small_vocabulary());
    std::mt19937 random(5);
    auto const text = random_text(random, 9000);
    auto const expected = t.encode(text);
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (std::size_t n = 0; n < wrong.size(); ++n) {
        threads.emplace_back([&, n] {
            for (int i = 0; i < 20; ++i)
                wrong[n] += t.encode(text) != expected || t.decode(expected) != text;
        });
    }
    for (auto& thread : threads)
        thread.join();
    CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("a tokenizer moves with its tables")
{
    auto v = small_vocabulary();
    v.pre = "llama-bpe"; // its table of whole pieces points into the text of the tokens
    tokenizer first(v);
    tokenizer const second(std::move(first));
    CHECK(second.encode("hello") == ids{id(second, "hello")});
}

TEST_CASE("a vocabulary is read from a file's metadata")
{
    auto const v = small_vocabulary();
    test::gguf_writer file;
    file.set("general.architecture", "none");
    file.set("tokenizer.ggml.model", v.model);
    file.set("tokenizer.ggml.pre", v.pre);
    file.set("tokenizer.ggml.tokens", std::span<std::string const>(v.tokens));
    file.set("tokenizer.ggml.token_type", std::span<std::int32_t const>(v.types));
    file.set("tokenizer.ggml.merges", std::span<std::string const>(v.merges));
    file.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*v.bos));
    file.set("tokenizer.ggml.eot_token_id", std::uint32_t{70});
    file.set("tokenizer.ggml.add_bos_token", true);
    auto image = file.bytes();
    auto const read = read_vocabulary(gguf_file::parse(image));
    CHECK(read.model == v.model);
    CHECK(read.pre == v.pre);
    CHECK(read.tokens == v.tokens);
    CHECK(read.types == v.types);
    CHECK(read.merges == v.merges);
    CHECK(read.bos == v.bos);
    CHECK(read.end_of_turn == 70);
    CHECK(!read.eos.has_value());
    CHECK(read.add_bos == true);
    CHECK(!read.add_eos.has_value());
    CHECK(tokenizer(read).encode("hello") == tokenizer(v).encode("hello"));

    file.set("tokenizer.ggml.bos_token_id", "seven");
    image = file.bytes();
    try {
        read_vocabulary(gguf_file::parse(image));
        FAIL("accepted");
    } catch (error const& e) {
        CHECK(e.condition() == errc::bad_file);
        CHECK(mentions(e.what(), "bos_token_id"));
    }
    auto const says = [](test::gguf_writer const& changed) -> std::string {
        auto const bytes = changed.bytes();
        try {
            read_vocabulary(gguf_file::parse(bytes));
        } catch (error const& e) {
            CHECK(e.condition() == errc::bad_file);
            return e.what();
        }
        return "accepted";
    };
    file.set("tokenizer.ggml.bos_token_id", std::int32_t{-1});
    CHECK(mentions(says(file), "key 'tokenizer.ggml.bos_token_id': is negative"));
    file.erase("tokenizer.ggml.bos_token_id");
    for (std::string const key : {"tokenizer.ggml.model", "tokenizer.ggml.tokens"}) {
        auto changed = file;
        changed.erase(key);
        CHECK(mentions(says(changed), "key '" + key + "': missing"));
        changed.set(key, std::int32_t{7});
        CHECK(mentions(says(changed), "key '" + key + "': is i32, expected"));
    }
    for (std::string const key : {"tokenizer.ggml.merges", "tokenizer.ggml.token_type", "tokenizer.ggml.scores"}) {
        auto changed = file;
        changed.set(key, "x");
        CHECK(mentions(says(changed), "key '" + key + "': is string, expected an array of"));
    }
}

TEST_CASE("published vocabularies give the published ids")
{
    int vocabularies = 0;
    // Of the last three the data has the vectors, but no vocabulary; they are compared where one is put beside them.
    for (std::string const name :
         {"gpt-2", "mpt", "refact", "deepseek-coder", "llama-spm", "phi-3", "llama-bpe", "qwen2", "command-r"}) {
        auto const path = test::shared_data("tokenizers/" + name + ".gguf");
        if (!path) continue;
        ++vocabularies;
        CAPTURE(name);
        tokenizer const t(read_vocabulary(gguf_file::open(*path)));
        std::ifstream in(path->string() + ".inp", std::ios::binary);
        std::string const all{std::istreambuf_iterator<char>(in), {}};
        std::ifstream out(path->string() + ".out");
        std::string const separator = "\n__ggml_vocab_test__\n";
        std::size_t at = 0;
        int texts = 0;
        for (std::string line; std::getline(out, line); ++texts) {
            auto const end = all.find(separator, at);
            auto const text = all.substr(at, end == std::string::npos ? end : end - at);
            at = end == std::string::npos ? all.size() : end + separator.size();
            std::istringstream numbers(line);
            ids const expected{std::istream_iterator<std::int32_t>(numbers), {}};
            CAPTURE(text);
            CHECK(t.encode(text) == expected);
            CHECK(t.decode(expected) == text);
        }
        CHECK(texts > 40);
    }
    if (vocabularies == 0) MESSAGE("skipped: not found: shared/data/tokenizers");
}
