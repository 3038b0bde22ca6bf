// The tokenizer of a real model against the ids that Hugging Face's tokenizers and llama.cpp give.
#include <plait/model/files/gguf.hpp>
#include <plait/model/text/text_stream.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace plait;
using nlohmann::json;

namespace {

using ids = std::vector<std::int32_t>;

json const& golden()
{
    static json const value = json::parse(std::ifstream(test::test_data("tokenizer/smollm.json")));
    return value;
}

std::optional<tokenizer> real()
{
    auto const path = test::model_file(golden().at("model").get<std::string>());
    if (!path) {
        MESSAGE("skipped: not found: ", golden().at("model").get<std::string>());
        return std::nullopt;
    }
    return std::optional<tokenizer>(std::in_place, read_vocabulary(gguf_file::open(*path)));
}

std::string text_of(json const& entry)
{
    if (entry.contains("text")) return entry["text"].get<std::string>();
    std::string out;
    if (entry.contains("repeat")) {
        auto const unit = entry["repeat"][0].get<std::string>();
        for (int i = entry["repeat"][1].get<int>(); i > 0; --i)
            out += unit;
        return out;
    }
    auto const hex = entry.at("hex").get<std::string>();
    for (std::size_t i = 0; i < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

/// As the script sums up the ids of a repeated text.
json summary(ids const& all)
{
    json runs = json::array();
    for (auto const id : all) {
        if (!runs.empty() && runs[runs.size() - 2] == id) {
            runs.back() = runs.back().get<std::size_t>() + 1;
        } else if (runs.size() > 64) {
            break;
        } else {
            runs.insert(runs.end(), {json(id), json(std::size_t{1})});
        }
    }
    if (runs.size() <= 64) return runs;
    std::uint64_t h = 0xCBF29CE484222325u;
    for (auto const id : all) {
        for (unsigned shift = 0; shift < 32; shift += 8) {
            h = (h ^ (static_cast<std::uint32_t>(id) >> shift & 0xFFu)) * 0x100000001B3u;
        }
    }
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(h));
    return {{"count", all.size()}, {"fnv1a", hex}};
}

std::string without_uncovered(tokenizer const& t, std::string_view text)
{
    std::string out;
    for (char const c : text) {
        if (t.covers(static_cast<unsigned char>(c))) out += c;
    }
    return out;
}

} // namespace

TEST_CASE("two hundred texts have the ids of two independent implementations")
{
    auto const t = real();
    if (!t) return;
    auto const& texts = golden().at("texts");
    REQUIRE(texts.size() >= 200);
    std::size_t differing = 0;
    for (auto const& entry : texts) {
        CAPTURE(entry["name"].get<std::string>());
        auto const text = text_of(entry);
        bool const parse = entry.value("parse_special", false);
        auto const got = t->encode(text, {.add_special = false, .parse_special = parse});
        if (entry.contains("ids")) {
            CHECK(got == entry["ids"].get<ids>());
        } else {
            CHECK(summary(got) == entry.at("runs"));
        }
        // Where llama.cpp differs, it keeps bytes that have no token as a wall between their neighbours.
        if (entry.contains("llama")) {
            ++differing;
            auto const repaired = replace_invalid_utf8(text);
            CHECK(without_uncovered(*t, repaired) != repaired);
            CHECK(t->decode(entry["llama"].get<ids>()) == t->decode(got));
        }
        CHECK(t->decode(got) == without_uncovered(*t, replace_invalid_utf8(text)));
    }
    CHECK(differing < 5);
}

TEST_CASE("the real vocabulary: special tokens, ends of generation, covered bytes")
{
    auto const t = real();
    if (!t) return;
    CHECK(t->size() == 49152);
    CHECK(t->bos() == 1);
    CHECK(t->eos() == 2);
    CHECK(!t->adds_bos());
    CHECK(t->piece(1) == "<|im_start|>");
    auto const ends = t->end_of_generation();
    CHECK(ids(ends.begin(), ends.end()) == ids{0, 2});
    for (unsigned b = 0; b < 256; ++b) {
        bool const valid_in_utf8 = b != 0xC0 && b != 0xC1 && b < 0xF5;
        bool const untrained =
            b == 4 || b == 6 || b == 0x13 || b == 0x14 || b == 0x16 || b == 0x1D || b == 0xF1 || b == 0xF2;
        CHECK(t->covers(static_cast<unsigned char>(b)) == (valid_in_utf8 && !untrained));
    }
}

TEST_CASE("streaming the tokens of every text gives the text, and its parts are UTF-8")
{
    auto const t = real();
    if (!t) return;
    std::size_t wrong = 0;
    for (auto const& entry : golden().at("texts")) {
        if (!entry.contains("ids")) continue;
        auto const tokens = entry["ids"].get<ids>();
        text_stream s(*t, {.stops = {}, .skip_special = false});
        std::string text;
        for (auto const id : tokens) {
            auto const update = s.push(id);
            if (!is_utf8(update.text)) ++wrong;
            text += update.text;
        }
        text += s.flush().text;
        if (text != replace_invalid_utf8(t->decode(tokens))) ++wrong;
    }
    CHECK(wrong == 0);
}

TEST_CASE("random text survives the real vocabulary")
{
    auto const t = real();
    if (!t) return;
    std::mt19937 random(21);
    std::size_t wrong = 0;
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (int i = 0; i < 200; ++i) {
            char32_t const scalar = random() % 2 ? random() % 0x80 : random() % 0x110000;
            if (scalar < 0xD800 || scalar > 0xDFFF) append_utf8(text, scalar);
        }
        if (t->decode(t->encode(text)) != without_uncovered(*t, text)) ++wrong;
    }
    CHECK(wrong == 0);
}
