#include <plait/model/shard.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace plait;
using namespace plait::test;

namespace {

struct opened {
    explicit opened(tiny_model_options const& options)
        : file(tiny_model_bytes(options))
        , gguf(gguf_file::open(file.path()))
        , model(describe(gguf))
    {
    }
    temporary_file file;
    gguf_file gguf;
    described_model model;
};

std::string refusal(opened const& o, parallelism const& how)
{
    try {
        check(how, o.gguf, o.model);
    } catch (error const& e) {
        CHECK(e.condition() == errc::invalid_argument);
        return e.what();
    }
    return "";
}

bool has(std::string const& text, std::string const& part)
{
    return text.find(part) != std::string::npos;
}

/// SmolLM2-135M's proportions in small: 9 heads over 3 KV heads.
tiny_model_options nine_heads()
{
    return {.width = 288, .heads = 9, .kv_heads = 3, .ffn = 768, .vocabulary = 384, .weights = ggml_type::q4_1};
}

} // namespace

TEST_CASE("a degree that does not divide a model is refused with the numbers that forbid it and the degrees that work")
{
    opened o(nine_heads());
    CHECK(refusal(o, {1}).empty());
    CHECK(refusal(o, {3}).empty());
    auto nine = refusal(o, {9});
    CHECK(has(nine, "tensor parallelism of 9"));
    CHECK(has(nine, "hidden features 768"));
    CHECK(has(nine, "vocabulary 384"));
    CHECK(has(nine, "degrees that do: 1, 3"));
    CHECK_FALSE(has(nine, "heads 9")); // a head each, and each KV head on three ranks
    auto two = refusal(o, {2});
    CHECK(has(two, "heads 9"));
    CHECK(has(two, "KV heads 3"));
    CHECK(refusal(o, {0}) != "");
    CHECK(refusal(o, {-1}) != "");
    CHECK(refusal(o, {1, 0}) != "");
    CHECK(has(refusal(o, {1, 3}), "2 layers"));
    CHECK(has(refusal(o, {3, 1, 4}), "sums of 4 parts on 3 ranks"));
    CHECK(refusal(o, {3, 1, -3}) != "");
}

TEST_CASE("a quantised product is cut between blocks only, one in floats anywhere")
{
    tiny_model_options shape; // 64 wide, 4 heads of 16, 128 hidden
    opened floats(shape);
    CHECK(refusal(floats, {4}).empty());
    CHECK(refusal(floats, {1, 1, 16}).empty());
    shape.weights = ggml_type::q8_0;
    opened blocks(shape);
    CHECK(refusal(blocks, {2}).empty());
    auto four = refusal(blocks, {4});
    CHECK(has(four, "attention features 64 in blocks of 32"));
    CHECK(has(four, "degrees that do: 1, 2"));
    CHECK(has(refusal(blocks, {1, 1, 8}), "with sums of 8 parts"));
}

TEST_CASE("one layer in floats does not hide that others are cut between blocks only")
{
    tiny_model_options shape;
    shape.weights = ggml_type::q8_0;
    shape.types = {{"blk.0.ffn_down.weight", ggml_type::f16}, {"blk.0.attn_output.weight", ggml_type::f16}};
    opened o(shape);
    CHECK(refusal(o, {2}).empty());
    CHECK(has(refusal(o, {4}), "attention features 64 in blocks of 32"));
}

TEST_CASE("a product of blocks of 256 is cut between them, each layer by its own blocks")
{
    tiny_model_options shape{.width = 512, .heads = 8, .kv_heads = 8, .ffn = 1024, .weights = ggml_type::q4_k};
    opened o(shape);
    CHECK(refusal(o, {2}).empty());
    auto four = refusal(o, {4});
    CHECK(has(four, "attention features 512 in blocks of 256"));
    CHECK_FALSE(has(four, "hidden features"));
    CHECK(has(four, "degrees that do: 1, 2"));
    CHECK(has(refusal(o, {2, 1, 8}), "hidden features 1024 in blocks of 256"));
    shape.types = {{"blk.0.attn_output.weight", ggml_type::q8_0}, {"blk.1.attn_output.weight", ggml_type::q8_0}};
    opened mixed(shape);
    CHECK(refusal(mixed, {4}).empty());
    CHECK(has(refusal(mixed, {8}), "hidden features 1024 in blocks of 256"));
}

TEST_CASE("ranks of a stage share its layers, and stages have all of them, in order")
{
    for (std::int32_t stages = 1; stages <= 7; ++stages)
        for (std::int32_t ranks : {1, 2, 4}) {
            opened o({.layers = 7});
            auto parts = divide({ranks, stages, 8}, o.model.spec);
            REQUIRE(parts.size() == static_cast<std::size_t>(stages * ranks));
            std::int64_t next = 0;
            for (std::int32_t stage = 0; stage < stages; ++stage)
                for (std::int32_t rank = 0; rank < ranks; ++rank) {
                    auto const& part = parts[static_cast<std::size_t>(stage * ranks + rank)];
                    CHECK(part.stage == stage);
                    CHECK(part.rank == rank);
                    CHECK(part.parts * ranks == 8);
                    CHECK(part.first_layer == next);
                    CHECK(part.layers >= 1);
                    CHECK(part.first() == (stage == 0));
                    CHECK(part.last() == (stage + 1 == stages));
                    if (rank + 1 == ranks) next += part.layers;
                }
            CHECK(next == 7);
        }
}

TEST_CASE("stages are balanced by their weights, the output counted with the last")
{
    opened o({.layers = 6, .width = 64, .vocabulary = 320});
    auto spec = o.model.spec;
    spec.vocabulary = 1;
    auto even = divide({1, 3}, spec);
    CHECK(even[0].layers == 2);
    CHECK(even[1].layers == 2);
    CHECK(even[2].layers == 2);
    // An output as heavy as two layers takes the place of two.
    auto const& a = spec.layers[0].attention;
    spec.vocabulary = 2 * (2 * a.query_width() + 2 * a.kv_width() + 3 * spec.layers[0].ffn.hidden);
    auto output = divide({1, 2}, spec);
    CHECK(output[0].layers == 4);
    CHECK(output[1].layers == 2);
    // A layer as heavy as all others is alone.
    spec.vocabulary = 1;
    spec.layers[0].ffn.hidden *= 8;
    auto heavy = divide({1, 2}, spec);
    CHECK(heavy[0].layers == 1);
}

TEST_CASE("a rank's part has its heads, hidden features and layers, and KV heads that are too few are on several")
{
    opened o(nine_heads());
    auto parts = divide({9, 2}, o.model.spec);
    for (auto const& part : parts) {
        auto mine = part_of(o.model.spec, part);
        CHECK(mine.layers.size() == 1);
        CHECK(mine.layers[0].attention.heads == 1);
        CHECK(mine.layers[0].attention.kv_heads == 1);
        CHECK(mine.vocabulary == o.model.spec.vocabulary);
        CHECK(part.first_kv_head(o.model.spec.layers[0].attention.kv_heads) == part.rank / 3);
    }
    auto three = divide({3, 1}, o.model.spec);
    CHECK(part_of(o.model.spec, three[2]).layers[1].ffn.hidden == 256);
    CHECK(part_of(o.model.spec, three[2]).layers[1].attention.heads == 3);
    CHECK(three[2].first_kv_head(o.model.spec.layers[0].attention.kv_heads) == 2);
}

TEST_CASE("the KV groups of a rank are those of the model, with its layers and heads")
{
    opened o({.layers = 4});
    auto spec = o.model.spec;
    spec.layers[1].attention.window = 32;
    spec.layers[3].attention.window = 32;
    auto whole = kv_geometry_of(spec, kv_type::f16);
    REQUIRE(whole.groups.size() == 2);
    auto parts = divide({2, 4}, spec);
    std::int64_t bytes = 0;
    for (auto const& part : parts) {
        auto mine = kv_geometry_of(spec, kv_type::f16, part);
        REQUIRE(mine.groups.size() == 2);
        auto group = static_cast<std::size_t>(part.first_layer % 2);
        CHECK(mine.groups[group].layers == std::vector<int>{0});
        CHECK(mine.groups[1 - group].layers.empty());
        CHECK(mine.groups[group].kv_heads == 1);
        CHECK(mine.groups[group].window == whole.groups[group].window);
        bytes += mine.bytes_per_token();
    }
    CHECK(bytes == whole.bytes_per_token());
}
