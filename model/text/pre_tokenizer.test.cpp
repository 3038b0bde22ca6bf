#include <plait/model/text/pre_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace plait;

namespace {

std::vector<std::string> split(pre_tokenizer const& rule, std::string_view text, bool first = true)
{
    std::vector<std::string_view> pieces;
    pre_tokenizer::texts rewritten;
    rule.split(text, pieces, rewritten, first);
    return {pieces.begin(), pieces.end()};
}

pre_tokenizer make(std::string_view rule, pre_tokenizer::engine how = pre_tokenizer::engine::compiled)
{
    return pre_tokenizer(find_pre_tokenizer_rule(rule).cuts, how);
}

std::vector<std::string> split(std::string_view rule, std::string_view text)
{
    return split(make(rule), text);
}

using pieces = std::vector<std::string>;

} // namespace

TEST_CASE("every rule cuts as the tokenizers library does, compiled and interpreted")
{
    auto const golden = nlohmann::json::parse(std::ifstream(test::test_data("tokenizer/splits.json")));
    auto const& texts = golden.at("texts");
    REQUIRE(texts.size() > 150);
    for (auto const& [name, expected] : golden.at("rules").items()) {
        CAPTURE(name);
        REQUIRE(expected.size() == texts.size());
        for (auto const how : {pre_tokenizer::engine::compiled, pre_tokenizer::engine::interpreted}) {
            auto const rule = make(name, how);
            for (std::size_t i = 0; i < texts.size(); ++i) {
                auto const text = texts[i].get<std::string>();
                std::vector<std::size_t> lengths;
                for (auto const& piece : split(rule, text))
                    lengths.push_back(piece.size());
                CAPTURE(text);
                CHECK(lengths == expected[i].get<std::vector<std::size_t>>());
            }
        }
    }
}

TEST_CASE("the rules differ where the models do")
{
    CHECK(split("gpt-2", "I'm 1234") == pieces{"I", "'m", " 1234"});
    CHECK(split("smollm", "I'm 1234") == pieces{"I", "'m", " ", "1", "2", "3", "4"});
    CHECK(split("llama-bpe", "I'M 1234") == pieces{"I", "'M", " ", "123", "4"});
    CHECK(split("qwen2", "a\n\nb 12") == pieces{"a", "\n\n", "b", " ", "1", "2"});
    CHECK(split("deepseek-coder", "int x;\n12") == pieces{"int", " x", ";", "\n", "1", "2"});
    CHECK(split("gpt-4o", "HTTPServer's") == pieces{"HTTPServer's"});
    CHECK(split("default", "x 12") == split("gpt-2", "x 12"));
}

TEST_CASE("the Mongolian vowel separator is not white space")
{
    CHECK(split("gpt-2", "a \u180E b") == pieces{"a", " \u180E", " b"});
}

TEST_CASE("a rule that is not known is named in the error")
{
    try {
        auto const rule = make("no-such-rule");
        FAIL("accepted");
    } catch (error const& e) {
        CHECK(e.condition() == errc::unsupported);
        CHECK(std::string(e.what()).find("tokenizer.ggml.pre") != std::string::npos);
        CHECK(std::string(e.what()).find("no-such-rule") != std::string::npos);
    }
    CHECK_THROWS_AS(make(""), error);
}

TEST_CASE("every rule that is listed can be made, and cuts without loss")
{
    auto const names = pre_tokenizer_rules();
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(names.size() > 20);
    std::string const text = "It's 2024,  the\tEND\r\n\r\n  — 中文、한국어 😀… x=\"1\" ";
    for (auto const name : names) {
        CAPTURE(name);
        std::string joined;
        for (auto const& piece : split(name, text)) {
            CHECK(!piece.empty());
            joined += piece;
        }
        CHECK(joined == text);
        CHECK(split(name, "").empty());
    }
}

TEST_CASE("a megabyte of anything is cut in one pass, and a fifth of that without compiling")
{
    auto const texts = [](std::size_t n) {
        std::string words;
        while (words.size() < n)
            words += "aB ";
        return std::vector<std::string>{
            std::string(n, 'a'),  std::string(n, 'A'),        std::string(n, ' '),        std::string(n, ' ') + "x",
            std::string(n, '\n'), std::string(n, '=') + "\n", std::string(n, ' ') + "\r", words,
        };
    };
    auto const check = [](pre_tokenizer const& rule, std::vector<std::string> const& all) {
        for (auto const& text : all) {
            std::vector<std::string_view> found;
            pre_tokenizer::texts rewritten;
            rule.split(text, found, rewritten);
            std::size_t total = 0;
            for (auto const piece : found)
                total += piece.size();
            CHECK(total == text.size());
            CHECK(found.front().data() == text.data());
        }
    };
    for (auto const* name : {"gpt-2", "smollm", "llama-bpe", "gpt-4o", "deepseek-coder", "deepseek-v3"}) {
        CAPTURE(name);
        check(make(name), texts(1'000'000));
        check(make(name, pre_tokenizer::engine::interpreted), texts(200'000));
    }
}

TEST_CASE("threads share a rule")
{
    auto const rule = make("llama-bpe");
    auto const expected = split(rule, "It's 1234 words\n\n and more");
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i)
                wrong[t] += split(rule, "It's 1234 words\n\n and more") != expected;
        });
    }
    for (auto& thread : threads)
        thread.join();
    CHECK(wrong == std::vector<int>(4));
}
