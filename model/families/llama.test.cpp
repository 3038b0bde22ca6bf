#include <plait/actors/error.hpp>
#include <plait/model/families/family.hpp>

#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace plait;
using test::gguf_writer;
using test::tiny_model_options;

namespace {

described_model described(gguf_writer const& writer)
{
    std::vector<std::byte> const bytes = writer.bytes();
    return describe(gguf_file::parse(bytes, "file"));
}

/// A tiny model with one change must be refused with `code` and a text that holds `part`.
void refuses(std::function<void(gguf_writer&)> const& change, errc code, std::string_view part,
             tiny_model_options const& options = {})
{
    gguf_writer file = test::tiny_model(options);
    change(file);
    std::string text = "not refused";
    std::optional<errc> got;
    try {
        described(file);
    } catch (error const& failure) {
        got = failure.condition();
        text = failure.what();
    }
    CAPTURE(text);
    CAPTURE(std::string(part));
    CHECK(got == code);
    CHECK(text.find(part) != std::string::npos);
}

void bad(std::function<void(gguf_writer&)> const& change, std::string_view part, tiny_model_options const& options = {})
{
    refuses(change, errc::bad_file, part, options);
}

void unsupported(std::function<void(gguf_writer&)> const& change, std::string_view part)
{
    refuses(change, errc::unsupported, part);
}

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

} // namespace

TEST_CASE("a llama header becomes a specification and a tensor map")
{
    described_model const model = described(test::tiny_model());
    model_spec const& spec = model.spec;
    CHECK(spec.architecture == "llama");
    CHECK(spec.name == "tiny");
    CHECK(spec.width == 64);
    CHECK(spec.vocabulary == 320);
    CHECK(spec.context == 256);
    CHECK(spec.embedding_scale == 1.0f);
    CHECK(spec.tied_output);
    CHECK(spec.final_norm == norm_spec{norm_kind::rms, 1e-5f});
    CHECK(spec.fingerprint != 0);
    REQUIRE(spec.layers.size() == 2);
    layer_spec const& layer = spec.layers[0];
    CHECK(spec.layers[1] == layer);
    CHECK(layer.placement == norm_placement::pre);
    CHECK(layer.norm == norm_spec{norm_kind::rms, 1e-5f});
    CHECK(layer.attention.heads == 4);
    CHECK(layer.attention.kv_heads == 2);
    CHECK(layer.attention.head_dim == 16);
    CHECK(layer.attention.scale == 0.25f);
    CHECK(layer.attention.window == 0);
    CHECK(layer.attention.soft_cap == 0);
    CHECK(layer.attention.rope ==
          rope_spec{.style = rope_style::pairs, .dims = 16, .base = 10000, .linear_scale = 1, .factors = {}});
    CHECK(layer.ffn == ffn_spec{.hidden = 128, .activation = activation_kind::silu, .gated = true});

    tensor_map const& tensors = model.tensors;
    CHECK(tensors.token_embedding == "token_embd.weight");
    CHECK(tensors.output.empty());
    CHECK(tensors.output_norm == norm_tensors{"output_norm.weight", {}});
    CHECK(tensors.read.empty());
    REQUIRE(tensors.layers.size() == 2);
    CHECK(tensors.layers[1].attention_norm.weight == "blk.1.attn_norm.weight");
    CHECK(tensors.layers[1].query == "blk.1.attn_q.weight");
    CHECK(tensors.layers[1].key == "blk.1.attn_k.weight");
    CHECK(tensors.layers[1].value == "blk.1.attn_v.weight");
    CHECK(tensors.layers[1].attention_output == "blk.1.attn_output.weight");
    CHECK(tensors.layers[1].ffn_norm.weight == "blk.1.ffn_norm.weight");
    CHECK(tensors.layers[1].ffn.gate == "blk.1.ffn_gate.weight");
    CHECK(tensors.layers[1].ffn.up == "blk.1.ffn_up.weight");
    CHECK(tensors.layers[1].ffn.down == "blk.1.ffn_down.weight");
}

TEST_CASE("every weight type that plait computes with is described alike, except for the fingerprint")
{
    tiny_model_options options{.width = 256, .ffn = 256};
    described_model first = described(test::tiny_model(options));
    for (ggml_type const type : {ggml_type::f16, ggml_type::bf16, ggml_type::q4_0, ggml_type::q4_1, ggml_type::q8_0,
                                 ggml_type::q4_k, ggml_type::q6_k}) {
        options.weights = type;
        described_model model = described(test::tiny_model(options));
        CHECK(model.spec.fingerprint != first.spec.fingerprint);
        model.spec.fingerprint = first.spec.fingerprint;
        CHECK(model.spec == first.spec);
    }
}

TEST_CASE("optional keys and tensors of a llama are obeyed")
{
    tiny_model_options options;
    options.head_dim = 32; // not width / heads
    options.tied_output = false;
    options.rope_factors = std::vector<float>(16, 1.0f);
    options.rope_factors[15] = 8.0f;
    gguf_writer file = test::tiny_model(options);
    file.set("llama.attention.sliding_window", std::uint32_t{64});
    file.set("llama.attention.scale", 0.5f);
    file.set("llama.attn_logit_softcapping", 30.0f);
    file.set("llama.embedding_scale", 8.0f);
    file.set("llama.rope.scaling.type", "linear");
    file.set("llama.rope.scaling.factor", 4.0f);
    described_model const model = described(file);
    attention_spec const& attention = model.spec.layers[1].attention;
    CHECK(attention.head_dim == 32);
    CHECK(attention.query_width() == 128);
    CHECK(attention.kv_width() == 64);
    CHECK(attention.scale == 0.5f);
    CHECK(attention.window == 64);
    CHECK(attention.soft_cap == 30.0f);
    CHECK(attention.rope.dims == 32);
    CHECK(attention.rope.linear_scale == 4.0f);
    CHECK(attention.rope.factors == options.rope_factors);
    CHECK(model.spec.embedding_scale == 8.0f);
    CHECK_FALSE(model.spec.tied_output);
    CHECK(model.tensors.output == "output.weight");
    CHECK(model.tensors.read == std::vector<std::string>{"rope_freqs.weight"});
}

TEST_CASE("keys that a llama file may leave out have their defaults")
{
    gguf_writer file = test::tiny_model({.kv_heads = 4});
    for (char const* key : {"general.name", "llama.vocab_size", "llama.attention.head_count_kv", "llama.rope.freq_base",
                            "llama.rope.dimension_count"})
        file.erase(key);
    std::vector<gguf_writer::entry> const entries = file.entries;
    for (gguf_writer::entry const& entry : entries)
        if (entry.key.starts_with("tokenizer.")) file.erase(entry.key);
    described_model const model = described(file);
    CHECK(model.spec.name.empty());
    CHECK(model.spec.layers[0].attention.kv_heads == 4);
    CHECK(model.spec.layers[0].attention.rope.base == 10000.0f);
    CHECK(model.spec.layers[0].attention.rope.dims == 16);

    file.set("llama.rope.scale_linear", 2.0f); // as older writers call it
    CHECK(described(file).spec.layers[0].attention.rope.linear_scale == 2.0f);
    file.set("llama.rope.scaling.type", "none");
    CHECK(described(file).spec.layers[0].attention.rope.linear_scale == 1.0f);
    file.set("llama.rope.scaling.type", "linear");
    file.set("llama.rope.scaling.factor", 0.0f);
    CHECK(described(file).spec.layers[0].attention.rope.linear_scale == 1.0f);
}

TEST_CASE("the layers of a llama may differ in heads and hidden units")
{
    gguf_writer file = test::tiny_model();
    file.set("llama.attention.head_count", std::vector<std::int32_t>{4, 2});
    file.set("llama.attention.head_count_kv", std::vector<std::int32_t>{2, 1});
    file.set("llama.feed_forward_length", std::vector<std::int32_t>{128, 96});
    file.set("llama.attention.key_length", std::uint32_t{16});
    file.set("llama.attention.value_length", std::uint32_t{16});
    auto const resize = [&](char const* name, std::vector<std::uint64_t> dims) {
        gguf_writer::tensor& tensor = file.at(name);
        tensor.data.resize(dims[0] * dims[1] * 4);
        tensor.dims = std::move(dims);
    };
    resize("blk.1.attn_q.weight", {64, 32});
    resize("blk.1.attn_k.weight", {64, 16});
    resize("blk.1.attn_v.weight", {64, 16});
    resize("blk.1.attn_output.weight", {32, 64});
    resize("blk.1.ffn_gate.weight", {64, 96});
    resize("blk.1.ffn_up.weight", {64, 96});
    resize("blk.1.ffn_down.weight", {96, 64});
    model_spec const spec = described(file).spec;
    CHECK(spec.layers[0].attention.heads == 4);
    CHECK(spec.layers[1].attention.heads == 2);
    CHECK(spec.layers[1].attention.kv_heads == 1);
    CHECK(spec.layers[1].ffn.hidden == 96);

    file.set("llama.feed_forward_length", std::vector<std::int32_t>{128, 96, 96});
    CHECK_THROWS_WITH_AS(described(file),
                         "file: key 'llama.feed_forward_length': 3 values for 2 layers: malformed file", error);
}

TEST_CASE("an architecture that is not known is named, with those that are")
{
    unsupported([](gguf_writer& f) { f.set("general.architecture", "perceptron"); },
                "the architecture 'perceptron' is not known; known: ");
    bad([](gguf_writer& f) { f.erase("general.architecture"); }, "key 'general.architecture': missing");
    bad([](gguf_writer& f) { f.set("general.architecture", std::uint32_t{3}); }, "key 'general.architecture': is u32");
    bool found = false;
    for (family const* one : known_families())
        found = found || one->architecture == "llama";
    CHECK(found);
}

TEST_CASE("a required key that is missing or of another type is named")
{
    for (std::string const key :
         {"llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
        bad([&](gguf_writer& f) { f.erase(key); }, "key '" + key + "': missing");
        bad([&](gguf_writer& f) { f.set(key, "many"); }, "key '" + key + "': is string");
    }
}

TEST_CASE("hyper-parameters that make no sense are refused by key")
{
    using file = gguf_writer;
    auto const set = [](char const* key, auto value) { return [=](file& f) { f.set(key, value); }; };
    bad(set("llama.block_count", 0u), "'llama.block_count': 0");
    bad(set("llama.block_count", 0xffffffffu), "'llama.block_count': 4294967295");
    bad(set("llama.block_count", 1025u), "'llama.block_count': 1025 is not between 1 and 1024");
    bad(set("llama.block_count", 1000u), "1000 layers, but the file has only 20 tensors");
    bad(set("llama.block_count", -1), "'llama.block_count': is negative");
    bad(set("llama.context_length", 0u), "'llama.context_length': 0");
    bad(set("llama.context_length", (1u << 24) + 1), "'llama.context_length': 16777217");
    bad(set("llama.context_length", std::uint64_t{1} << 40), "'llama.context_length': 1099511627776");
    bad(set("llama.embedding_length", 0u), "'llama.embedding_length': 0");
    bad(set("llama.embedding_length", 0x80000000u), "'llama.embedding_length': 2147483648");
    bad(set("llama.feed_forward_length", 0u), "'llama.feed_forward_length': 0");
    bad(set("llama.attention.head_count", 0u), "'llama.attention.head_count': 0");
    bad(set("llama.attention.head_count", 6u), "'llama.attention.head_count': 6 heads do not divide the width 64");
    bad(set("llama.attention.head_count_kv", 0u), "'llama.attention.head_count_kv': 0");
    bad(set("llama.attention.head_count_kv", 3u), "'llama.attention.head_count_kv': 3 KV heads do not divide the 4");
    bad(set("llama.attention.head_count_kv", 8u), "'llama.attention.head_count_kv': 8 KV heads are more than the 4");
    bad(set("llama.attention.key_length", 0u), "'llama.attention.key_length': 0");
    bad(set("llama.attention.key_length", 1u << 29), "'llama.attention.key_length': heads of 536870912; at most 4096");
    bad(set("llama.embedding_length", 1u << 20), "'llama.attention.head_count': heads of 262144; at most 4096");
    bad(
        [](file& f) {
            f.set("llama.attention.head_count", 1u << 19);
            f.set("llama.attention.key_length", 4096u);
        },
        "'llama.attention.head_count': 524288 heads of 4096 are wider than");
    bad(set("llama.attention.layer_norm_rms_epsilon", not_a_number), "rms_epsilon': nan");
    bad(set("llama.attention.layer_norm_rms_epsilon", infinity), "rms_epsilon': inf");
    bad(set("llama.attention.layer_norm_rms_epsilon", 0.0f), "rms_epsilon': 0");
    bad(set("llama.attention.layer_norm_rms_epsilon", -1e-5f), "rms_epsilon': -0.00001");
    bad(set("llama.attention.layer_norm_rms_epsilon", 1.0f), "rms_epsilon': 1");
    bad(set("llama.rope.freq_base", not_a_number), "'llama.rope.freq_base': nan");
    bad(set("llama.rope.freq_base", infinity), "'llama.rope.freq_base': inf");
    bad(set("llama.rope.freq_base", 0.0f), "'llama.rope.freq_base': 0");
    bad(set("llama.rope.freq_base", 1.0f), "'llama.rope.freq_base': 1.000000 is not above 1");
    bad(set("llama.rope.dimension_count", 0u), "'llama.rope.dimension_count': 0");
    bad(set("llama.rope.dimension_count", 15u), "'llama.rope.dimension_count': 15");
    bad(set("llama.rope.dimension_count", 18u), "'llama.rope.dimension_count': 18");
    bad(set("llama.rope.scaling.factor", not_a_number), "'llama.rope.scaling.factor': nan");
    bad(set("llama.rope.scaling.factor", -2.0f), "'llama.rope.scaling.factor': -2");
    bad(set("llama.attention.scale", 0.0f), "'llama.attention.scale': 0");
    bad(set("llama.attn_logit_softcapping", not_a_number), "softcapping': nan");
    bad(set("llama.embedding_scale", infinity), "'llama.embedding_scale': inf");
    bad(set("llama.vocab_size", 321u), "'llama.vocab_size': 321 tokens, but 'token_embd.weight' has 320 rows");
    bad([](file& f) { f.set("tokenizer.ggml.tokens", std::vector<std::string>(319, "x")); },
        "'tokenizer.ggml.tokens': 319 tokens");
}

TEST_CASE("a stretched rotation that makes no sense is refused by key, before its factors are made")
{
    using file = gguf_writer;
    auto const yarn = [](char const* key, auto value) {
        return [=](file& f) {
            f.set("llama.rope.scaling.type", "yarn");
            f.set("llama.rope.scaling.factor", 4.0f);
            f.set(key, value);
        };
    };
    CHECK_NOTHROW([&] {
        file good = test::tiny_model();
        yarn("llama.rope.scaling.original_context_length", 64u)(good);
        described(good);
    }());
    for (float const value : {not_a_number, infinity, -infinity, 0.0f, -1.0f}) {
        CAPTURE(value);
        bad(yarn("llama.rope.scaling.factor", value), "'llama.rope.scaling.factor': ");
        bad(yarn("llama.rope.scaling.yarn_beta_fast", value), "'llama.rope.scaling.yarn_beta_fast': ");
        bad(yarn("llama.rope.scaling.yarn_beta_slow", value), "'llama.rope.scaling.yarn_beta_slow': ");
        bad(yarn("llama.rope.scaling.attn_factor", value), "'llama.rope.scaling.attn_factor': ");
        bad(yarn("llama.rope.freq_base", value), "'llama.rope.freq_base': ");
    }
    bad(yarn("llama.rope.scaling.original_context_length", 0u), "'llama.rope.scaling.original_context_length': 0");
    // A head of half a billion would have gigabytes of factors.
    bad(yarn("llama.attention.key_length", 1u << 29), "'llama.attention.key_length': heads of 536870912");
    bad(yarn("llama.rope.freq_base", 1e308), "'llama.rope.freq_base': inf");
}

TEST_CASE("a mixture that the header only claims is refused by the key or the tensor that is missing")
{
    using file = gguf_writer;
    auto const mixture = [](std::uint32_t count, std::uint32_t used, std::uint64_t routed) {
        return [=](file& f) {
            f.set("llama.expert_count", count);
            f.set("llama.expert_used_count", used);
            if (routed > 0) f.add("blk.0.ffn_gate_inp.weight", {64, routed}, ggml_type::f32);
            if (routed > 0) f.add("blk.1.ffn_gate_inp.weight", {64, routed}, ggml_type::f32);
        };
    };
    bad([](file& f) { f.set("llama.expert_count", 8u); }, "'llama.expert_used_count'");
    bad(mixture(8, 2, 0), "tensor 'blk.0.ffn_gate_inp.weight'");
    bad(mixture(4294967295u, 2, 0), "'llama.expert_count': 4294967295 is not between 1 and");
    bad(mixture(1025, 2, 1025), "'llama.expert_count': 1025 is not between 1 and 1024");
    bad(mixture(1000, 2, 8), "'llama.expert_count': 1000 experts, but 'blk.0.ffn_gate_inp.weight' has 8 rows");
    bad(mixture(8, 9, 8), "experts used: 9 is not between 1 and 8");
    bad(mixture(8, 2, 8), "tensor 'blk.0.ffn_gate_exps.weight': missing");
    bad([](file& f) { f.set("llama.nextn_predict_layers", 2u); },
        "'llama.nextn_predict_layers': 2 of 2 layers guess ahead");
    bad([](file& f) { f.set("llama.nextn_predict_layers", 65u); },
        "'llama.nextn_predict_layers': 65 is not between 1 and 64");
}

TEST_CASE("features that would change the computation are refused as unsupported")
{
    using file = gguf_writer;
    auto const set = [](char const* key, auto value) { return [=](file& f) { f.set(key, value); }; };
    unsupported(
        [](file& f) {
            f.set("llama.expert_count", 8u);
            f.set("llama.expert_used_count", 2u);
            f.set("llama.expert_gating_func", 4u);
        },
        "'llama.expert_gating_func': 4");
    unsupported(set("llama.attention.value_length", 8u), "'llama.attention.value_length': 8 differs");
    unsupported(set("llama.attention.causal", false), "'llama.attention.causal'");
    unsupported(set("llama.use_parallel_residual", true), "'llama.use_parallel_residual'");
    unsupported(set("llama.attention.clamp_kqv", 8.0f), "'llama.attention.clamp_kqv'");
    unsupported(set("llama.attention.max_alibi_bias", 8.0f), "'llama.attention.max_alibi_bias'");
    unsupported(set("llama.final_logit_softcapping", 30.0f), "'llama.final_logit_softcapping'");
    unsupported(set("llama.residual_scale", 0.5f), "'llama.residual_scale'");
    unsupported(set("llama.logit_scale", not_a_number), "'llama.logit_scale'");
    unsupported(set("llama.rope.scaling.type", "dynamic"), "'llama.rope.scaling.type': 'dynamic'");
    for (char const* key : {"llama.residual_scale", "llama.logit_scale"}) {
        file neutral = test::tiny_model();
        neutral.set(key, 1.0f);
        CHECK_NOTHROW(described(neutral));
    }
}

TEST_CASE("tensors that contradict the header are refused with both shapes")
{
    using file = gguf_writer;
    bad([](file& f) { f.erase_tensor("token_embd.weight"); }, "tensor 'token_embd.weight': missing");
    bad([](file& f) { f.erase_tensor("output_norm.weight"); },
        "tensor 'output_norm.weight': missing; its shape should be [64]");
    bad([](file& f) { f.erase_tensor("blk.1.ffn_down.weight"); },
        "tensor 'blk.1.ffn_down.weight': missing; its shape should be [128, 64]");
    bad([](file& f) { f.set("llama.block_count", 3u); }, "tensor 'blk.2.attn_norm.weight': missing");
    bad([](file& f) { f.set("llama.block_count", 1u); },
        "tensor 'blk.1.attn_norm.weight': the header declares only 1 layers");
    bad([](file& f) { f.set("llama.feed_forward_length", 96u); },
        "tensor 'blk.0.ffn_gate.weight': expected the shape [64, 96], found [64, 128]");
    bad([](file& f) { f.set("llama.embedding_length", 128u); },
        "tensor 'token_embd.weight': expected the shape [128, 320], found [64, 320]");
    bad([](file& f) { f.set("llama.attention.head_count_kv", 4u); },
        "tensor 'blk.0.attn_k.weight': expected the shape [64, 64], found [64, 32]");
    bad([](file& f) { f.at("blk.1.ffn_down.weight").dims = {64, 128}; },
        "tensor 'blk.1.ffn_down.weight': expected the shape [128, 64], found [64, 128]");
    bad([](file& f) { f.at("blk.1.attn_norm.weight").dims = {32, 2}; }, "expected the shape [64], found [32, 2]");
    bad([](file& f) { f.at("blk.1.attn_q.weight").dims = {64, 32, 2}; }, "expected the shape [64, 64], found");
    file same = test::tiny_model();
    same.at("blk.1.attn_norm.weight").dims = {64, 1}; // a dimension of 1 says nothing
    CHECK_NOTHROW(described(same));

    tiny_model_options own_output;
    own_output.tied_output = false;
    bad([](file& f) { f.at("output.weight").dims = {320, 64}; },
        "tensor 'output.weight': expected the shape [64, 320], found [320, 64]", own_output);
}

TEST_CASE("tensors that the architecture does not have are refused")
{
    using file = gguf_writer;
    auto const add = [](char const* name) { return [=](file& f) { f.add(name, {64}, ggml_type::f32); }; };
    for (char const* norm : {"blk.0.post_attention_norm.weight", "blk.1.post_ffw_norm.weight",
                             "blk.0.attn_q_norm.weight", "blk.0.layer_output_norm.weight", "token_embd_norm.weight"})
        bad(add(norm), "'" + std::string(norm) + "': a norm that this architecture does not have");
    bad(add("blk.0.attn_q.bias"), "tensor 'blk.0.attn_k.bias': missing");
    bad(add("blk.1.attn_q.bias"), "tensor 'blk.1.attn_q.bias': a bias that this architecture does not have");
    bad(add("output_norm.bias"), "tensor 'output_norm.bias': a bias that this architecture does not have");
    bad(add("blk.0.ffn_gate_exps.weight"), "'blk.0.ffn_gate_exps.weight': experts that the header does not declare");
    bad(add("blk.0.attn_qkv.weight"), "no such tensor");
    bad(add("blk.2.attn_norm.weight"), "tensor 'blk.2.attn_norm.weight': the header declares only 2 layers");
    bad(add("blk.99999999999999999999.attn_q.weight"), "no such tensor");
    bad(add("blk.x"), "no such tensor");
    bad(add("position_embd.weight"), "tensor 'position_embd.weight': this architecture has no such tensor");
}

TEST_CASE("vectors that are used as they are must not be quantised, and rope factors positive numbers")
{
    using file = gguf_writer;
    unsupported(
        [](file& f) {
            f.at("blk.0.attn_norm.weight").type = static_cast<std::uint32_t>(ggml_type::q8_0);
            f.at("blk.0.attn_norm.weight").data.resize(68);
        },
        "tensor 'blk.0.attn_norm.weight': expected F32, F16 or BF16 values, found Q8_0");
    auto const factors = [](std::vector<float> const& values, ggml_type type = ggml_type::f32) {
        return [=](file& f) { f.add("rope_freqs.weight", {values.size()}, type, test::encode(type, values)); };
    };
    bad(factors(std::vector<float>(4, 1.0f)), "tensor 'rope_freqs.weight': expected the shape [8], found [4]");
    unsupported(factors(std::vector<float>(8, 1.0f), ggml_type::f16), "'rope_freqs.weight': expected F32 values");
    for (float const value : {0.0f, -1.0f, infinity, not_a_number}) {
        std::vector<float> values(8, 1.0f);
        values[7] = value;
        bad(factors(values), "tensor 'rope_freqs.weight': the factor");
    }
}

TEST_CASE("a model whose weights have a type that cannot be computed with is still described")
{
    gguf_writer file = test::tiny_model({.width = 256, .ffn = 256});
    file.at("blk.0.ffn_up.weight").type = static_cast<std::uint32_t>(ggml_type::iq2_xs);
    file.at("blk.0.ffn_up.weight").data.resize(256 * 74);
    std::vector<std::byte> const bytes = file.bytes();
    gguf_file const parsed = gguf_file::parse(bytes, "file");
    described_model const model = describe(parsed);
    CHECK_THROWS_WITH_AS(parsed.format(parsed.tensor(model.tensors.layers[0].ffn.up.name)),
                         doctest::Contains("file: tensor 'blk.0.ffn_up.weight': type IQ2_XS cannot be computed with"),
                         error);
}
