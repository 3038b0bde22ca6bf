#include <plait/model/convert/vocabulary_of.hpp>

#include <plait/model/convert/convert.hpp>
#include <plait/model/convert/merge_scores.hpp>
#include <plait/model/convert/same_ids.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/model/files/gguf_writer.hpp>
#include <plait/model/files/mapped_file.hpp>
#include <plait/model/text/hub_tokenizer.hpp>
#include <plait/model/text/sentencepiece_model.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>
#include <plait/tests/support/tokenizer_kinds.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace plait;
using nlohmann::json;
using test::check_failure;
using test::temporary_folder;

namespace {

constexpr std::string_view mark = "\u2581";

/// Written to a file and read again.
tokenizer_description through_a_file(vocabulary const& what)
{
    temporary_folder const folder;
    gguf_metadata keys;
    keys.set("general.architecture", what.architecture);
    set_vocabulary(keys, what);
    gguf_writer(folder.path() / "vocabulary.gguf", keys, {}).finish();
    return describe(read_vocabulary(gguf_file::open(folder.path() / "vocabulary.gguf")));
}

vocabulary written(tokenizer_description const& from, std::string_view architecture = "llama")
{
    return vocabulary_of(from, static_cast<std::int64_t>(from.tokens.size()) + 3, architecture, "here");
}

/// 1,000 texts have the same ids before and after; `without` is left out of them.
void check_same(tokenizer_description const& from, tokenizer_description const& to,
                std::vector<std::string> const& without = {})
{
    tokenizer const before(from), after(to);
    CHECK(after.size() == before.size() + 3);
    CHECK(std::ranges::equal(after.before(), before.before()));
    CHECK(std::ranges::equal(after.after(), before.after()));
    int different = 0;
    for (std::uint64_t number = 0; number < 1000; ++number) {
        auto const text = test::kinds_text(number, without);
        for (bool const parses : {false, true}) {
            encode_options const how{.add_special = true, .parse_special = parses};
            auto const ids = before.encode(text, how);
            if (ids != after.encode(text, how) || before.decode(ids) != after.decode(ids)) {
                if (different++ == 0) CHECK_MESSAGE(false, "another text: ", text);
            }
        }
    }
    CHECK(different == 0);
}

sentencepiece_model model_of(std::string const& kind, char const* name = "tokenizer.model")
{
    auto const path = test::tokenizer_kind(kind) / name;
    return sentencepiece_model::parse(read_text_file(path, 1 << 20), path.string());
}

/// The tokenizer.json that Hugging Face's converter makes of a SentencePiece BPE model: a merge for every two pieces
/// that make a third, by the score of that one.
json json_of(sentencepiece_model const& model)
{
    json vocab = json::object();
    std::map<std::string, std::size_t> ids;
    for (std::size_t i = 0; i < model.pieces.size(); ++i) {
        vocab[model.pieces[i].text] = i;
        ids[model.pieces[i].text] = i;
    }
    std::multimap<float, std::pair<std::string, std::string>, std::greater<>> merges; // equal ones keep their order
    for (auto const& piece : model.pieces) {
        std::string_view const text = piece.text;
        for (auto at = first_utf8(text).length; at < text.size(); at += first_utf8(text.substr(at)).length) {
            std::string const left(text.substr(0, at)), right(text.substr(at));
            if (ids.contains(left) && ids.contains(right)) merges.insert({piece.score, {left, right}});
        }
    }
    json listed = json::array();
    for (auto const& [score, parts] : merges)
        listed.push_back({parts.first, parts.second});
    json added = json::array();
    for (std::size_t id = 0; id < 3; ++id)
        added.push_back({{"id", id},
                         {"content", model.pieces[id].text},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", true}});
    auto const spaces = json{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}};
    auto const marks = json{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}};
    return {{"version", "1.0"},
            {"added_tokens", added},
            {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", mark}}, spaces}}}},
            {"pre_tokenizer", nullptr},
            {"post_processor",
             {{"type", "TemplateProcessing"},
              {"single",
               {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
              {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
            {"decoder",
             {{"type", "Sequence"},
              {"decoders",
               {marks,
                {{"type", "ByteFallback"}},
                {{"type", "Fuse"}},
                {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
            {"model",
             {{"type", "BPE"},
              {"unk_token", "<unk>"},
              {"fuse_unk", true},
              {"byte_fallback", true},
              {"vocab", vocab},
              {"merges", listed}}}};
}

tokenizer_description parsed(json const& from)
{
    auto out = parse_tokenizer_json(from.dump());
    out.bos = 1;
    out.eos = 2;
    return out;
}

void check_refused(tokenizer_description const& from, char const* what)
{
    CAPTURE(std::string(what));
    check_failure([&] { written(from); }, errc::unsupported, {"here: tokenizer: ", what});
}

} // namespace

TEST_CASE("a SentencePiece model keeps its pieces, scores and types, and texts their ids")
{
    auto const model = model_of("spm_llama");
    auto from = describe(model, "model");
    from.before = {1};
    auto const what = written(from);
    CHECK(what.model == "llama");
    CHECK(what.add_space_prefix == true);
    CHECK(what.add_bos == true);
    for (std::size_t i = 0; i < model.pieces.size(); ++i) {
        CHECK(what.tokens[i] == model.pieces[i].text);
        if (i > 2) CHECK(what.scores[i] == model.pieces[i].score);
        CHECK(what.types[i] == static_cast<std::int32_t>(model.pieces[i].type));
    }
    CHECK(what.tokens.back() == "[PAD" + std::to_string(what.tokens.size() - 1) + "]");
    CHECK(what.types.back() == static_cast<std::int32_t>(token_type::unused));
    CHECK(what.scores.back() == -10000);
    check_same(from, through_a_file(what));
}

TEST_CASE("symbols of a SentencePiece model are found behind the space in front of a text")
{
    auto model = model_of("spm_llama");
    for (auto const* symbol : {"<tool>", "\u2581\u2581", "fox", "\n"}) {
        std::erase_if(model.pieces, [&](auto const& piece) { return piece.text == symbol; });
        model.pieces.push_back({symbol, 0, token_type::user_defined});
    }
    auto const from = describe(model, "model");
    auto const what = written(from);
    CHECK(what.normalized_symbols);
    CHECK(what.tokens[model.pieces.size() - 3] == "  "); // as other programs look for it
    check_same(from, through_a_file(what));
}

TEST_CASE("a folder with a SentencePiece model has the vocabulary that llama.cpp's converter gives it")
{
    auto const source = test::test_data("tokenizer/converted");
    temporary_folder const folder;
    for (auto const* name : {"config.json", "tokenizer_config.json"})
        std::filesystem::copy_file(source / name, folder.path() / name);
    std::filesystem::copy_file(test::tokenizer_kind("spm_llama") / "tokenizer.model",
                               folder.path() / "tokenizer.model");
    test::safetensors_writer weights;
    auto const add = [&](std::string const& name, std::uint64_t rows, std::uint64_t columns) {
        auto const count = rows * std::max<std::uint64_t>(columns, 1);
        std::vector<std::uint64_t> shape{rows};
        if (columns > 0) shape.push_back(columns);
        weights.add(name, "BF16", shape, std::vector<std::byte>(2 * count, std::byte{0x3c}));
    };
    add("model.embed_tokens.weight", 704, 32);
    add("model.norm.weight", 32, 0);
    std::string const layer = "model.layers.0.";
    for (auto const* norm : {"input_layernorm", "post_attention_layernorm"})
        add(layer + norm + ".weight", 32, 0);
    for (auto const& [name, rows] :
         {std::pair("self_attn.q_proj", 32), std::pair("self_attn.k_proj", 16), std::pair("self_attn.v_proj", 16),
          std::pair("self_attn.o_proj", 32), std::pair("mlp.gate_proj", 32), std::pair("mlp.up_proj", 32),
          std::pair("mlp.down_proj", 32)})
        add(layer + name + ".weight", static_cast<std::uint64_t>(rows), 32);
    folder.write("model.safetensors", weights.bytes());
    convert(folder.path(), folder.path() / "model.gguf", {.type = {}, .name = "tiny"});
    auto const ours = gguf_file::open(folder.path() / "model.gguf");
    auto const theirs = gguf_file::open(source / "vocabulary.gguf");
    for (gguf_entry const& expected : theirs.metadata()) {
        std::string const key(expected.key);
        CAPTURE(key);
        if (key == "general.file_type" || key == "general.quantization_version") continue;
        REQUIRE(ours.has(key));
        gguf_entry const& found = *ours.find_entry(key);
        CHECK(found.type == expected.type);
        if (key == "tokenizer.ggml.token_type") {
            // The unknown token is listed as an added one too, which there makes it a control token.
            auto types = ours.i32s(key);
            CHECK(types.at(0) == static_cast<std::int32_t>(token_type::unknown));
            types.at(0) = static_cast<std::int32_t>(token_type::control);
            CHECK(types == theirs.i32s(key));
            continue;
        }
        CHECK(std::ranges::equal(found.payload, expected.payload));
    }
    std::set<std::string> more;
    for (gguf_entry const& found : ours.metadata())
        if (found.key.starts_with("tokenizer.") && !theirs.has(found.key)) more.emplace(found.key);
    CHECK(more == std::set<std::string>{"tokenizer.ggml.add_space_prefix", "tokenizer.ggml.unknown_token_id"});
    tokenizer const before(read_tokenizer(folder.path())), after(read_vocabulary(ours));
    for (std::uint64_t number = 0; number < 1000; ++number) {
        auto const text = test::kinds_text(number);
        CHECK(before.encode(text, {.add_special = true}) == after.encode(text, {.add_special = true}));
    }
}

TEST_CASE("a tokenizer.json that describes a SentencePiece model has its scores, and texts their ids")
{
    auto const model = model_of("spm_llama");
    auto const from = parsed(json_of(model));
    auto const what = written(from);
    for (std::size_t i = 0; i < model.pieces.size(); ++i) {
        CAPTURE(model.pieces[i].text);
        if (model.pieces[i].type == token_type::normal) CHECK(what.scores[i] == model.pieces[i].score);
        if (i > 0) CHECK(what.types[i] == static_cast<std::int32_t>(model.pieces[i].type));
    }
    check_same(from, through_a_file(what));

    SUBCASE("without a space in front")
    {
        auto other = json_of(model);
        other["normalizer"] = other["normalizer"]["normalizers"][1];
        other["decoder"]["decoders"].erase(3);
        other["pre_tokenizer"] = {
            {"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
        auto const gemma = parsed(other);
        auto const plain = written(gemma);
        CHECK(plain.add_space_prefix == false);
        check_same(gemma, through_a_file(plain));
    }
    for (std::string const scheme : {"first", "always", "never"}) {
        for (bool const split : {false, true}) {
            CAPTURE(scheme);
            CAPTURE(split);
            auto other = json_of(model);
            other["normalizer"] = nullptr;
            other["pre_tokenizer"] = {
                {"type", "Metaspace"}, {"replacement", mark}, {"prepend_scheme", scheme}, {"split", split}};
            if (scheme == "never") other["decoder"]["decoders"].erase(3);
            auto const mistral = parsed(other);
            if (split) {
                check_refused(mistral, "it cuts text at spaces, but a token has some inside");
                continue;
            }
            auto const own = written(mistral);
            CHECK(own.space_prefix == (scheme == "never" ? "" : scheme));
            check_same(mistral, through_a_file(own));
        }
    }
}

TEST_CASE("texts have the ids of published SentencePiece vocabularies by way of a tokenizer.json")
{
    int vocabularies = 0;
    for (auto const* name : {"llama-spm", "baichuan"}) {
        auto const path = test::shared_data(std::string("tokenizers/") + name + ".gguf");
        if (!path) continue;
        ++vocabularies;
        CAPTURE(std::string(name));
        auto const stored = read_vocabulary(gguf_file::open(*path));
        sentencepiece_model model;
        model.how = sentencepiece_model::algorithm::bpe;
        for (std::size_t i = 0; i < stored.tokens.size(); ++i)
            model.pieces.push_back({stored.tokens[i], stored.scores[i], static_cast<token_type>(stored.types[i])});
        auto const from = parsed(json_of(model));
        auto const what = written(from);
        check_same(from, through_a_file(what), {"<unk>"});
        // Whatever the scores were, tokens join in the same order.
        auto after = from;
        after.model = sentencepiece_bpe_model{.scores = stored.scores};
        prove_same_ids(after, from, name);
    }
    if (vocabularies == 0) MESSAGE("skipped: not found: shared/data/tokenizers");
}

TEST_CASE("added tokens are found where they were, and what strips the text beside them is refused")
{
    auto const model = model_of("spm_llama");
    auto with = [&](bool strips) {
        auto all = json_of(model);
        auto id = model.pieces.size();
        for (auto const& [text, special] :
             {std::pair("<|user|>", true), std::pair("<|end|>", true), std::pair("<tool>", false)})
            all["added_tokens"].push_back({{"id", id++},
                                           {"content", text},
                                           {"single_word", false},
                                           {"lstrip", false},
                                           {"rstrip", strips},
                                           {"normalized", false},
                                           {"special", special}});
        return parsed(all);
    };
    check_same(with(false), through_a_file(written(with(false))));
    check_refused(with(true), "an added token takes note of what is beside it");
    // Readers know it of Phi-3, of all but the outermost tokens.
    auto phi = with(true);
    for (auto& token : phi.added)
        if (token.text == "</s>") token.strip_right = true;
    check_same(phi, through_a_file(written(phi, "phi3")));
}

TEST_CASE("a unigram model keeps its table and its scores, and texts their ids")
{
    auto model = model_of("spm_t5", "spiece.model");
    CHECK(!model.charsmap.empty());
    check_refused(describe(model, "model"), "a unigram model with symbols of its own");
    std::erase_if(model.pieces, [](auto const& piece) { return piece.type == token_type::user_defined; });
    auto from = describe(model, "model");
    from.after = {1};
    auto const what = written(from, "t5");
    CHECK(what.model == "t5");
    CHECK(what.charsmap == model.charsmap);
    CHECK(what.remove_extra_spaces == true);
    check_same(from, through_a_file(what), {"<s>", "</s>", "<unk>", "<pad>"});
}

TEST_CASE("several tokens before and after a text are in keys of plait's own")
{
    auto const model = model_of("spm_llama");
    auto from = describe(model, "model");
    from.before = {1, 5};
    from.after = {7, 2};
    auto const what = written(from);
    CHECK(what.add_bos == false);
    CHECK(what.before == std::vector<std::int32_t>{1, 5});
    check_same(from, through_a_file(what));

    auto wrong = what;
    wrong.after = std::vector<std::int32_t>{7, 7'000'000};
    check_failure([&] { describe(wrong); }, errc::bad_file, {"tokenizer.plait.after: 7000000"});
    wrong = what;
    wrong.space_prefix = "seldom";
    check_failure([&] { describe(wrong); }, errc::unsupported, {"tokenizer.plait.space_prefix: 'seldom'"});
}

TEST_CASE("a tokenizer that GGUF has no words for is refused by name")
{
    auto const kind = [](char const* name) { return read_tokenizer(test::tokenizer_kind(name)); };
    check_refused(kind("gpt1"), "it marks the ends of words");
    check_refused(kind("llama2"), "is made by some merges and not by others, which no scores of SentencePiece say");
    check_refused(kind("spm_symbols"), "it puts a space at the end of a text");
    check_refused(kind("spm_bytes"), "a unigram model that writes unknown characters with bytes");
    check_refused(kind("albert"), "it cuts or rewrites text as SentencePiece does not");
    check_refused(kind("t5"), "it cuts or rewrites text as SentencePiece does not");
    check_refused(kind("behaviours"), "it rewrites text before it cuts it");
    check_refused(kind("falcon"), "it cuts text by a rule that tokenizer.ggml.pre has no name for");

    auto const model = model_of("spm_llama");
    auto with = [&](auto change) {
        auto all = json_of(model);
        change(all);
        return parsed(all);
    };
    check_refused(with([](json& j) { j["model"]["ignore_merges"] = true; }), "a piece that is a token is that token");
    check_refused(with([](json& j) { j["normalizer"] = {{"type", "NFKC"}}; }), "it rewrites text before it cuts it");
    check_refused(with([](json& j) { j["normalizer"] = nullptr; }), "it leaves spaces as they are");
    check_refused(with([](json& j) { j["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}}; }),
                  "it cuts text by a rule that SentencePiece does not have");
    // A marker that is looked for in rewritten text is found only where a space is put in front of it.
    check_refused(with([](json& j) { j["added_tokens"][1]["normalized"] = true; }),
                  "a GGUF file would make other tokens of");
    auto spaced = model;
    spaced.remove_extra_spaces = true;
    check_refused(describe(spaced, "model"), "it rewrites text before it cuts it");
    auto crowded = describe(model, "model");
    check_failure([&] { vocabulary_of(crowded, 10, "llama", "here"); }, errc::bad_file,
                  {"here: tokenizer: 700 tokens, but the embedding has 10"});
}

TEST_CASE("tokens are numbered as merges make them, and then the others")
{
    tokenizer_description from;
    from.tokens = {"<unk>", "abc", "ab", "a", "b", "c"};
    from.types.assign(6, token_type::normal);
    from.types[0] = token_type::unknown;
    bpe_model model{.from = bpe_model::symbols::characters, .merges = {{"a", "b"}, {"ab", "c"}}, .end_of_word = {}};
    CHECK(merge_scores(from, model, "here") == std::vector<float>{0, -1, 0, -2, -3, -4});
    from.tokens.emplace_back("bc");
    from.types.push_back(token_type::normal);
    check_failure([&] { merge_scores(from, model, "here"); }, errc::unsupported,
                  {"here: tokenizer: 'abc' is made by some merges and not by others"});
    model.merges = {{"a", "bc"}, {"b", "c"}, {"ab", "c"}, {"a", "b"}};
    check_failure([&] { merge_scores(from, model, "here"); }, errc::unsupported,
                  {"here: tokenizer: merges that make 'abc' stand in several places"});
}

TEST_CASE("tokenizers that differ are told apart")
{
    auto const one = describe(model_of("spm_llama"), "model");
    prove_same_ids(one, one, "here");
    auto other = one;
    std::ranges::reverse(std::get<sentencepiece_bpe_model>(other.model).scores);
    check_failure([&] { prove_same_ids(one, other, "here"); }, errc::unsupported,
                  {"here: tokenizer: a GGUF file would make other tokens of '"});
    auto ending = one;
    ending.ends = {9};
    check_failure([&] { prove_same_ids(ending, one, "here"); }, errc::unsupported, {"would not end an answer"});
}
