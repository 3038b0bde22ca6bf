#include <plait/model/text/hub_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

using namespace plait;
using nlohmann::json;

namespace {

using ids = std::vector<std::int32_t>;

/// A folder that is gone with the test.
class folder {
public:
    folder()
        : path_(std::filesystem::temp_directory_path() / ("plait-tokenizer-" + std::to_string(::getpid())))
    {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directory(path_);
    }
    ~folder() { std::filesystem::remove_all(path_); }
    folder(folder const&) = delete;
    folder& operator=(folder const&) = delete;

    std::filesystem::path const& path() const noexcept { return path_; }
    void write(std::string const& name, std::string const& content) const
    {
        std::ofstream(path_ / name, std::ios::binary) << content;
    }
    void copy(std::string const& from, std::string const& name) const
    {
        std::filesystem::copy_file(test::test_data("tokenizer/kinds/" + from), path_ / name);
    }

private:
    std::filesystem::path path_;
};

json published(std::string const& kind)
{
    return json::parse(std::ifstream(test::test_data("tokenizer/kinds/" + kind + "/tokenizer.json")));
}

/// What reading and building say about a document that must be refused.
std::string refusal(std::string const& text, errc code = errc::bad_file)
{
    try {
        tokenizer const t(parse_tokenizer_json(text));
    } catch (error const& e) {
        CHECK(e.condition() == code);
        return e.what();
    }
    FAIL("accepted");
    return {};
}

std::string refusal(std::string const& kind, std::function<void(json&)> const& change, errc code = errc::bad_file)
{
    auto document = published(kind);
    change(document);
    return refusal(document.dump(), code);
}

bool mentions(std::string const& text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

tokenizer changed(std::string const& kind, std::function<void(json&)> const& change)
{
    auto document = published(kind);
    change(document);
    return tokenizer(parse_tokenizer_json(document.dump()));
}

} // namespace

TEST_CASE("what is not JSON, or too deep, is refused with the file's name")
{
    CHECK(mentions(refusal("{"), "tokenizer.json"));
    CHECK(mentions(refusal("[]"), "not an object"));
    CHECK(mentions(refusal("{\"model\":\"\xFF\"}"), "tokenizer.json"));
    CHECK(mentions(refusal(std::string(100'000, '[')), "nested deeper"));
    CHECK(mentions(refusal("{\"a\":" + std::string(70, '[') + std::string(70, ']') + "}"), "nested deeper"));
    // Brackets in strings do not nest.
    CHECK(mentions(refusal("{\"a\":\"" + std::string(100, '[') + "\"}"), "model: missing"));
}

TEST_CASE("a field that is missing or of the wrong type is named")
{
    CHECK(mentions(refusal("{}"), "model: missing"));
    CHECK(mentions(refusal(R"({"model":7})"), "tokenizer.json: model"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"].erase("vocab"); }), "model.vocab: missing"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"].erase("merges"); }), "model.merges: missing"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"] = 1; }), "model.vocab"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"]["a"] = "x"; }), "model.vocab.a"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"]["a"] = 1.5; }), "not a whole number"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["ignore_merges"] = "yes"; }), "model.ignore_merges"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["added_tokens"][0].erase("content"); }),
                   "added_tokens[0].content: missing"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["pre_tokenizer"]["pretokenizers"][0]["pattern"] = "x"; }),
                   "pre_tokenizer.pretokenizers[0].pattern"));
    CHECK(mentions(refusal("phi3", [](json& d) { d["decoder"]["decoders"][3].erase("start"); }), "start: missing"));
    CHECK(mentions(refusal("mistral", [](json& d) { d["pre_tokenizer"]["replacement"] = "ab"; }), "replacement"));
}

TEST_CASE("kinds that are not supported are refused by name")
{
    auto const no = errc::unsupported;
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["type"] = "WordPiece"; }, no), "WordPiece"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["type"] = "WordLevel"; }, no), "WordLevel"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["dropout"] = 0.1; }, no), "model.dropout"));
    CHECK(mentions(refusal(
                       "llama3", [](json& d) { d["model"]["continuing_subword_prefix"] = "##"; }, no),
                   "continuing_subword_prefix"));
    CHECK(mentions(refusal("qwen2", [](json& d) { d["normalizer"]["type"] = "Nmt"; }, no), "Nmt"));
    CHECK(mentions(
        refusal("neox", [](json& d) { d["pre_tokenizer"]["type"] = "UnicodeScripts"; }, no), "UnicodeScripts"));
    CHECK(mentions(refusal("neox", [](json& d) { d["decoder"]["type"] = "CTC"; }, no), "CTC"));
    CHECK(mentions(refusal("llama2", [](json& d) { d["post_processor"]["type"] = "Other"; }, no), "Other"));
    CHECK(mentions(refusal("llama2", [](json& d) { d["decoder"]["decoders"][3]["start"] = 2; }, no), "decoders[3]"));
    CHECK(mentions(refusal("gemma", [](json& d) { d["pre_tokenizer"]["behavior"] = "Sideways"; }, no), "Sideways"));
    CHECK(mentions(
        refusal(
            "behaviours", [](json& d) { d["pre_tokenizer"]["pretokenizers"][1]["pattern"] = {{"Regex", "(a"}}; }, no),
        "(a"));
    CHECK(mentions(refusal(
                       "qwen2",
                       [](json& d) {
                           d["normalizer"] = {{"type", "Replace"},
                                              {"pattern", {{"String", " "}}},
                                              {"content", std::string(1000, 'x')}};
                       },
                       no),
                   "normalizer.content"));
}

TEST_CASE("a vocabulary that contradicts itself is refused")
{
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"]["a"] = 5; }), "id 5 of two tokens"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"]["a"] = -1; }), "id -1"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["vocab"]["zz"] = 2'000'000'000; }), "id 2000000000"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["merges"][3] = {"no such", "a"}; }), "model.merges[3]"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["merges"][3] = {"", "a"}; }), "an empty piece"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["merges"][3] = "a"; }), "not two pieces"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["merges"][3] = {"a", "b", "c"}; }), "not two pieces"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["model"]["merges"][3] = {"z", "Z"}; }), "zZ"));
    CHECK(mentions(refusal("llama2", [](json& d) { d["model"]["unk_token"] = "<none>"; }), "<none>"));
    CHECK(mentions(refusal("llama3", [](json& d) { d["added_tokens"][0]["id"] = 400; }), "added_tokens[0]"));
    CHECK(mentions(refusal("t5", [](json& d) { d["model"]["unk_id"] = 100'000; }), "model.unk_id"));
    CHECK(mentions(refusal("t5", [](json& d) { d["model"]["vocab"][7] = {"x"}; }), "model.vocab[7]"));
    CHECK(mentions(refusal("t5", [](json& d) { d["model"]["vocab"][7][1] = 1e300; }), "model.vocab[7]"));
    CHECK(mentions(refusal("t5", [](json& d) { d["normalizer"]["precompiled_charsmap"] = "AAAA"; }), "charsmap"));
    CHECK(mentions(refusal("t5", [](json& d) { d["normalizer"]["precompiled_charsmap"] = "!"; }), "base64"));
    CHECK(mentions(refusal("t5", [](json& d) { d["post_processor"]["special_tokens"]["</s>"]["ids"][0] = 99999; }),
                   "99999"));
}

TEST_CASE("older files say the same in other words")
{
    auto const now = tokenizer(parse_tokenizer_json(published("llama3").dump()));
    auto const before = changed("llama3", [](json& d) {
        d["model"].erase("type");
        for (auto& merge : d["model"]["merges"])
            merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    });
    std::string const text = "The quick brown fox, 12345 times";
    CHECK(before.encode(text) == now.encode(text));

    auto const scheme = changed("t5", [](json&) {});
    auto const flag = changed("t5", [](json& d) {
        auto& step = d["pre_tokenizer"]["pretokenizers"][1];
        step.erase("prepend_scheme");
        step["add_prefix_space"] = true;
    });
    CHECK(flag.encode(text) == scheme.encode(text));
}

TEST_CASE("control tokens are made only where the caller asks, whatever the file's kind")
{
    for (auto const* kind : {"llama2", "mistral", "phi3", "gemma", "llama3", "qwen2", "t5", "albert"}) {
        CAPTURE(kind);
        tokenizer const t(parse_tokenizer_json(published(kind).dump()));
        int controls = 0;
        for (std::int32_t id = 0; id < static_cast<std::int32_t>(t.size()); ++id) {
            if (t.type(id) != token_type::control) continue;
            ++controls;
            std::string const name(t.piece(id));
            auto const parsed = t.encode(name, {.parse_special = true});
            CHECK(std::find(parsed.begin(), parsed.end(), id) != parsed.end());
            for (auto const& text : {name, "a" + name, name + " b", name + name}) {
                for (auto const found : t.encode(text))
                    CHECK(t.type(found) != token_type::control);
            }
        }
        CHECK(controls > 0);
    }
}

TEST_CASE("a token for unknown characters is no control token, and one that ends a text stands for none")
{
    auto const t = changed("t5", [](json&) {});
    CHECK(t.type(2) == token_type::unknown);
    auto const found = t.encode("𒀀");
    CHECK(std::find(found.begin(), found.end(), 2) != found.end());

    folder const d;
    auto document = published("t5");
    document["model"]["unk_id"] = 1;
    d.write("tokenizer.json", document.dump());
    d.write("tokenizer_config.json", R"({"eos_token":"</s>"})");
    tokenizer const other(read_tokenizer(d.path()));
    CHECK(other.type(1) == token_type::control);
    for (auto const id : other.encode("𒀀"))
        CHECK(other.type(id) != token_type::control);
}

TEST_CASE("a directory's configuration names the special tokens and says whether they are added")
{
    folder const d;
    d.copy("llama2/tokenizer.json", "tokenizer.json");
    auto const read = [&] { return tokenizer(read_tokenizer(d.path())); };
    CHECK(!read().bos());
    CHECK(read().before().size() == 1); // by the template

    d.write("special_tokens_map.json", R"({"bos_token":{"content":"<s>"},"eos_token":"<unk>"})");
    CHECK(read().bos() == 1);
    CHECK(read().eos() == 0);
    d.write("tokenizer_config.json", R"({"bos_token":"<s>","eos_token":{"content":"</s>"}})");
    CHECK(read().eos() == 2);
    CHECK(read().adds_bos());
    CHECK(!read().adds_eos());
    CHECK(read().encode("a", {.add_special = true}).front() == 1);

    d.write("tokenizer_config.json",
            R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":false,"add_eos_token":true})");
    CHECK(!read().adds_bos());
    CHECK(read().adds_eos());
    CHECK(read().encode("", {.add_special = true}) == ids{2});

    d.write("generation_config.json", R"({"eos_token_id":[2,5,1000000]})");
    auto const t = read();
    auto const ends = t.end_of_generation();
    CHECK(ids(ends.begin(), ends.end()) == ids{2, 5});
    d.write("generation_config.json", R"({"eos_token_id":"2"})");
    CHECK_THROWS_AS(read(), error);
    d.write("generation_config.json", "{}");
    d.write("tokenizer_config.json", R"({"add_bos_token":1})");
    CHECK_THROWS_AS(read(), error);
}

TEST_CASE("a directory without a tokenizer is not found")
{
    folder const d;
    try {
        read_tokenizer(d.path());
        FAIL("accepted");
    } catch (error const& e) {
        CHECK(e.condition() == errc::not_found);
        CHECK(mentions(e.what(), d.path().string()));
    }
    d.write("tokenizer.json", "");
    CHECK_THROWS_AS(read_tokenizer(d.path()), error);
}

TEST_CASE("a tokenizer's file that is longer than any is refused before it is read")
{
    for (char const* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json"}) {
        CAPTURE(name);
        folder const d;
        d.write(name, "{}");
        std::filesystem::resize_file(d.path() / name, (std::uintmax_t{512} << 20) + 1);
        try {
            read_tokenizer(d.path());
            FAIL("accepted");
        } catch (error const& e) {
            CHECK(e.condition() == errc::unsupported);
            CHECK(mentions(e.what(), name));
            CHECK(mentions(e.what(), "536870913 bytes; at most 536870912 are read"));
        }
    }
}

TEST_CASE("ChatGLM2 and 3 put their markers behind the pieces of the model and before the text")
{
    folder const d;
    d.copy("spm_llama/tokenizer.model", "tokenizer.model");
    tokenizer const plain(read_tokenizer(d.path()));
    CHECK(plain.adds_bos()); // as LLaMA
    d.write("tokenizer_config.json", R"({"tokenizer_class":"ChatGLMTokenizer"})");
    tokenizer const t(read_tokenizer(d.path()));
    auto const n = static_cast<std::int32_t>(plain.size());
    CHECK(t.piece(n + 1) == "[gMASK]");
    CHECK(t.piece(n + 3) == "sop");
    auto expected = plain.encode("Hello world");
    expected.insert(expected.begin(), {n + 1, n + 3});
    CHECK(t.encode("Hello world", {.add_special = true}) == expected);
    CHECK(t.ends_generation(n + 6)); // <|user|>
    CHECK(t.ends_generation(2));
    CHECK(t.encode("<|user|>", {.parse_special = true}) == ids{n + 6});
    auto const forged = t.encode("<|user|>");
    CHECK(std::find(forged.begin(), forged.end(), n + 6) == forged.end());
}

TEST_CASE("ChatGLM-6B names blanks, and puts its markers after the text")
{
    tokenizer const t(read_tokenizer(test::test_data("tokenizer/kinds/spm_chatglm")));
    std::string const text = "a\tb\n\n  c" + std::string(81, ' ') + "d" + std::string(200, ' ');
    CHECK(t.decode(t.encode(text)) == text);
    auto const blank = t.encode("x" + std::string(80, ' ') + "x");
    CHECK(std::find(blank.begin(), blank.end(), *t.find(std::string(80, ' '))) != blank.end());
    auto const all = t.encode("a", {.add_special = true});
    CHECK(t.piece(all[all.size() - 2]) == "[gMASK]");
    CHECK(t.piece(all.back()) == "<sop>");
    CHECK(t.piece(*t.eos()) == "<eop>");
    // The model lists its markers as text; a user's text must not make them all the same.
    for (auto const id : t.encode("[gMASK] <sop> <eop>"))
        CHECK(t.type(id) != token_type::control);
    CHECK(t.encode("[gMASK]", {.parse_special = true}) == ids{*t.find("[gMASK]")});

    folder const d;
    d.copy("spm_chatglm/ice_text.model", "ice_text.model");
    d.write("tokenizer_config.json", R"({"num_image_tokens":20000})");
    CHECK_THROWS_AS(read_tokenizer(d.path()), error);
    std::filesystem::remove(d.path() / "ice_text.model");
    d.copy("spm_llama/tokenizer.model", "ice_text.model");
    d.write("tokenizer_config.json", "{}");
    CHECK_THROWS_AS(read_tokenizer(d.path()), error); // no markers
}

TEST_CASE("a directory adds tokens to those of its SentencePiece model")
{
    folder const d;
    d.copy("spm_llama/tokenizer.model", "tokenizer.model");
    auto const n = tokenizer(read_tokenizer(d.path())).size();
    auto const config = [&](std::string const& id, std::string const& rest) {
        d.write("tokenizer_config.json", R"({"added_tokens_decoder":{")" + id + R"(":{"content":)" + rest + "}}}");
    };
    config(std::to_string(n), R"("<|new|>","special":true)");
    tokenizer const t(read_tokenizer(d.path()));
    CHECK(t.size() == n + 1);
    CHECK(t.encode("<|new|>", {.parse_special = true}) == ids{static_cast<std::int32_t>(n)});
    config(std::to_string(n), R"("<tool>","special":false,"rstrip":true)");
    CHECK(tokenizer(read_tokenizer(d.path())).encode("<tool>  ") == ids{static_cast<std::int32_t>(n)});
    for (auto const& [id, content] :
         std::vector<std::pair<std::string, std::string>>{{std::to_string(n + 1), "\"a gap\""},
                                                          {"3", "\"another\""},
                                                          {"x", "\"no id\""},
                                                          {"-1", "\"no id\""},
                                                          {"5", "7"}}) {
        config(id, content);
        CHECK_THROWS_AS(read_tokenizer(d.path()), error);
    }
}

TEST_CASE("vocab.json and merges.txt are GPT-2's or GPT-1's")
{
    folder const d;
    auto const split = [&](std::string const& kind) {
        auto const document = published(kind);
        d.write("vocab.json", document["model"]["vocab"].dump());
        std::string merges = "#version: 0.2\n";
        for (auto const& merge : document["model"]["merges"])
            merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
        d.write("merges.txt", merges);
        return tokenizer(parse_tokenizer_json(document.dump()));
    };
    auto const one = split("gpt1");
    tokenizer const first(read_tokenizer(d.path()));
    std::string const text = "Hello, World! Straße 123  naïve café 你好";
    CHECK(first.encode(text) == one.encode(text));
    CHECK(first.decode(one.encode("hello world!")) == "hello world !");

    auto const two = split("neox");
    tokenizer const second(read_tokenizer(d.path()));
    CHECK(second.encode("Hello, World! 123 café") == two.encode("Hello, World! 123 café"));
    d.write("vocab.json", R"({"a":0,"b":2})");
    CHECK_THROWS_AS(read_tokenizer(d.path()), error);
}
