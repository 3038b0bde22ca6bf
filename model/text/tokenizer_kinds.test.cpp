// Tokenizers of every kind, read from model directories, against Hugging Face's tokenizers and sentencepiece.
#include <plait/model/files/gguf.hpp>
#include <plait/model/text/hub_tokenizer.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/tokenizer_kinds.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

using namespace plait;
using nlohmann::json;

namespace {

using ids = std::vector<std::int32_t>;

json const& golden()
{
    return test::tokenizer_kinds();
}

class fnv1a {
public:
    void add(std::uint32_t word)
    {
        for (unsigned shift = 0; shift < 32; shift += 8)
            hash_ = (hash_ ^ (word >> shift & 0xFFu)) * 0x100000001B3u;
    }
    std::string hex() const
    {
        char out[17];
        std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash_));
        return out;
    }

private:
    std::uint64_t hash_ = 0xCBF29CE484222325u;
};

/// Hashes of the ids of all texts, by blocks, with what is left out of the texts.
std::vector<std::string> block_hashes(tokenizer const& t, encode_options options,
                                      std::vector<std::string> const& without = {})
{
    auto const block = golden().at("block").get<std::uint64_t>();
    std::vector<std::string> out;
    for (std::uint64_t number = 0; number < golden().at("texts").get<std::uint64_t>();) {
        fnv1a found;
        for (auto const end = number + block; number < end; ++number) {
            auto const tokens = t.encode(test::kinds_text(number, without), options);
            found.add(static_cast<std::uint32_t>(tokens.size()));
            for (auto const id : tokens)
                found.add(static_cast<std::uint32_t>(id));
        }
        out.push_back(found.hex());
    }
    return out;
}

tokenizer read(std::string const& kind)
{
    return tokenizer(read_tokenizer(test::tokenizer_kind(kind)));
}

} // namespace

TEST_CASE("10,000 texts have the ids that each kind's own library gives")
{
    CHECK(golden().at("texts") == 10'000);
    CHECK(golden().at("kinds").size() == 19);
    for (auto const& [kind, expected] : golden().at("kinds").items()) {
        CAPTURE(kind);
        auto const t = read(kind);
        // sentencepiece finds no control pieces in a text; tokenizers always does.
        bool const parses = expected.at("peer").get<std::string>().starts_with("tokenizers");
        encode_options const options{.add_special = expected.at("adds").get<bool>(), .parse_special = parses};
        auto const without = expected.at("without").get<std::vector<std::string>>();
        for (auto const& sample : expected.at("samples")) {
            auto const written = test::kinds_text(sample[0].get<std::uint64_t>(), without);
            CAPTURE(written);
            CHECK(json(t.encode(written, options)) == sample[1]);
        }
        auto const found = block_hashes(t, options, without);
        CHECK(found.size() == 100);
        CHECK(json(found) == expected.at("blocks"));
    }
}

TEST_CASE("10,000 texts have the ids that published vocabularies give in independent implementations")
{
    int vocabularies = 0;
    for (auto const& [name, expected] : golden().at("published").items()) {
        auto const path = test::shared_data("tokenizers/" + name + ".gguf");
        if (!path) continue;
        ++vocabularies;
        CAPTURE(name);
        tokenizer const t(read_vocabulary(gguf_file::open(*path)));
        CHECK(json(block_hashes(t, {})) == expected.at("blocks"));
    }
    if (vocabularies == 0) MESSAGE("skipped: not found: shared/data/tokenizers");
}

TEST_CASE("tokens become the text that each kind's own library makes of them")
{
    for (auto const& [kind, expected] : golden().at("kinds").items()) {
        CAPTURE(kind);
        auto const t = read(kind);
        for (auto const& sample : expected.at("samples")) {
            CAPTURE(sample[0].get<int>());
            auto const tokens = sample[1].get<ids>();
            CHECK(t.decode(tokens) == sample[2].get<std::string>());
        }
    }
}
