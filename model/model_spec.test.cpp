#include <plait/model/model_spec.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

using namespace plait;

namespace {

model_spec sample()
{
    model_spec spec;
    spec.architecture = "sample";
    spec.width = 64;
    spec.vocabulary = 300;
    spec.context = 128;
    spec.tied_output = true;
    spec.fingerprint = 0x1234;
    layer_spec layer;
    layer.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16, .scale = 0.25f, .rope = {}};
    layer.attention.rope = {.style = rope_style::pairs, .dims = 16, .factors = {}};
    layer.ffn.hidden = 128;
    spec.layers.assign(3, layer);
    return spec;
}

/// What check() says about the sample with one change.
std::string problem(std::function<void(model_spec&)> const& change)
{
    model_spec spec = sample();
    change(spec);
    try {
        check(spec);
    } catch (error const& failure) {
        CHECK(failure.condition() == errc::invalid_argument);
        return failure.what();
    }
    return "none";
}

bool holds(std::string const& text, std::string_view part)
{
    CAPTURE(text);
    CAPTURE(std::string(part));
    bool const found = text.find(part) != std::string::npos;
    CHECK(found);
    return found;
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

} // namespace

TEST_CASE("a specification prints in a few lines, equal layers together")
{
    model_spec spec = sample();
    spec.name = "a model";
    spec.layers[2].placement = norm_placement::post_add;
    spec.layers[2].attention.window = 32;
    spec.layers[2].attention.soft_cap = 50;
    spec.layers[2].attention.rope = {
        .style = rope_style::halves, .dims = 8, .base = 5e5f, .linear_scale = 4, .factors = {1, 1, 2, 8}};
    spec.layers[2].ffn = {.hidden = 256, .activation = activation_kind::gelu_tanh, .gated = false};
    CHECK(
        to_string(spec) ==
        "sample \"a model\"\n"
        "width 64, vocabulary 300, context 128, output tied\n"
        "layers 0-1: pre rms 1e-05; attention 4 heads over 2 of 16, scale 0.25; rope pairs on 16, base 10000; "
        "ffn 128 silu gated\n"
        "layer 2: post-add rms 1e-05; attention 4 heads over 2 of 16, scale 0.25, window 32, soft cap 50; rope halves "
        "on 8, base 500000, positions / 4, 4 frequency factors; ffn 256 gelu-tanh\n"
        "final norm rms 1e-05, fingerprint 0000000000001234\n");
    spec = sample();
    spec.layers.resize(1);
    spec.layers[0].attention.rope.style = rope_style::none;
    spec.final_norm.kind = norm_kind::none;
    spec.tied_output = false;
    spec.embedding_scale = 8;
    std::string const text = to_string(spec);
    holds(text, "output its own, embedding scale 8\n");
    holds(text, "rope none;");
    holds(text, "final norm none, fingerprint");
}

TEST_CASE("a specification that can be run passes the check")
{
    CHECK(problem([](model_spec&) {}) == "none");
    CHECK(problem([](model_spec& s) { s.layers[1].attention.rope.style = rope_style::none; }) == "none");
    CHECK(problem([](model_spec& s) { s.layers[1].attention.rope.factors.assign(8, 1.0f); }) == "none");
    CHECK(problem([](model_spec& s) { s.final_norm = {norm_kind::none, 0}; }) == "none");
}

TEST_CASE("a specification that cannot be run is refused by layer and field")
{
    using spec = model_spec;
    holds(problem([](spec& s) { s.width = 0; }), "model: width: 0");
    holds(problem([](spec& s) { s.vocabulary = -1; }), "vocabulary: -1");
    holds(problem([](spec& s) { s.context = 0; }), "context: 0");
    holds(problem([](spec& s) { s.context = (1 << 24) + 1; }), "context: 16777217");
    holds(problem([](spec& s) { s.embedding_scale = not_a_number; }), "embedding scale: nan");
    holds(problem([](spec& s) { s.layers.clear(); }), "layers: there are none");
    holds(problem([](spec& s) { s.final_norm.epsilon = 0; }), "final norm epsilon: 0");
    holds(problem([](spec& s) { s.layers[1].norm.epsilon = infinity; }), "layer 1 norm epsilon: inf");
    holds(problem([](spec& s) { s.layers[1].norm.epsilon = 1; }), "layer 1 norm epsilon: 1 is not below 1");
    holds(problem([](spec& s) { s.layers[2].attention.heads = 0; }), "layer 2 heads: 0");
    holds(problem([](spec& s) { s.layers[2].attention.kv_heads = 0; }), "layer 2 KV heads: 0");
    holds(problem([](spec& s) { s.layers[2].attention.kv_heads = 3; }), "layer 2 KV heads: 3 do not divide the 4");
    holds(problem([](spec& s) { s.layers[2].attention.kv_heads = 8; }), "layer 2 KV heads: 8 do not divide the 4");
    holds(problem([](spec& s) { s.layers[2].attention.head_dim = 0; }), "layer 2 head dim: 0");
    holds(problem([](spec& s) { s.layers[2].attention.head_dim = std::int64_t{1} << 31; }), "layer 2 query width");
    holds(problem([](spec& s) { s.layers[2].attention.scale = 0; }), "layer 2 attention scale: 0");
    holds(problem([](spec& s) { s.layers[2].attention.window = -1; }), "layer 2 window: -1");
    holds(problem([](spec& s) { s.layers[2].attention.soft_cap = not_a_number; }), "layer 2 soft cap: nan");
    holds(problem([](spec& s) { s.layers[0].attention.rope.dims = 7; }), "layer 0 rope dims: 7");
    holds(problem([](spec& s) { s.layers[0].attention.rope.dims = 0; }), "layer 0 rope dims: 0");
    holds(problem([](spec& s) { s.layers[0].attention.rope.dims = 18; }), "layer 0 rope dims: 18");
    holds(problem([](spec& s) { s.layers[0].attention.rope.base = 1; }), "layer 0 rope base: 1");
    holds(problem([](spec& s) { s.layers[0].attention.rope.base = not_a_number; }), "layer 0 rope base: nan");
    holds(problem([](spec& s) { s.layers[0].attention.rope.linear_scale = 0; }), "layer 0 rope linear scale: 0");
    holds(problem([](spec& s) { s.layers[0].attention.rope.factors = {1, 2}; }), "layer 0 rope factors: 2 of them");
    holds(problem([](spec& s) { s.layers[0].attention.rope.factors.assign(8, -1.0f); }), "layer 0 rope factor: -1");
    holds(problem([](spec& s) { s.layers[0].ffn.hidden = 0; }), "layer 0 ffn hidden: 0");

    model_spec bad = sample();
    bad.width = 0;
    try {
        check(bad, errc::bad_file, "some.gguf");
        FAIL("not refused");
    } catch (error const& failure) {
        CHECK(failure.condition() == errc::bad_file);
        holds(failure.what(), "some.gguf: width: 0");
    }
}
