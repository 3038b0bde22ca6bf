#include <plait/model/families/hf_header.hpp>

#include <plait/actors/error.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;

namespace {

/// A LLaMA of one layer: width 8, 2 heads over 1 of 4, 16 hidden features, 10 tokens.
struct small_llama {
    std::map<std::string, std::string> fields{
        {"architectures", R"(["LlamaForCausalLM"])"},
        {"model_type", R"("llama")"},
        {"hidden_size", "8"},
        {"intermediate_size", "16"},
        {"num_hidden_layers", "1"},
        {"num_attention_heads", "2"},
        {"num_key_value_heads", "1"},
        {"max_position_embeddings", "64"},
        {"vocab_size", "10"},
        {"rms_norm_eps", "1e-05"},
        {"rope_theta", "10000.0"},
        {"tie_word_embeddings", "false"},
    };
    std::map<std::string, std::vector<std::uint64_t>> tensors{
        {"model.embed_tokens.weight", {10, 8}},
        {"model.layers.0.input_layernorm.weight", {8}},
        {"model.layers.0.self_attn.q_proj.weight", {8, 8}},
        {"model.layers.0.self_attn.k_proj.weight", {4, 8}},
        {"model.layers.0.self_attn.v_proj.weight", {4, 8}},
        {"model.layers.0.self_attn.o_proj.weight", {8, 8}},
        {"model.layers.0.post_attention_layernorm.weight", {8}},
        {"model.layers.0.mlp.gate_proj.weight", {16, 8}},
        {"model.layers.0.mlp.up_proj.weight", {16, 8}},
        {"model.layers.0.mlp.down_proj.weight", {8, 16}},
        {"model.norm.weight", {8}},
        {"lm_head.weight", {10, 8}},
    };
    test::temporary_folder folder;

    described_model describe() const
    {
        std::string config = "{";
        for (auto const& [field, value] : fields)
            config += (config.size() == 1 ? "\"" : ",\"") + field + "\":" + value;
        folder.write("config.json", config + "}");
        test::safetensors_writer file;
        for (auto const& [name, dims] : tensors) {
            std::size_t bytes = 4;
            for (auto const d : dims)
                bytes *= static_cast<std::size_t>(d);
            file.add(name, "F32", dims, std::vector<std::byte>(bytes));
        }
        folder.write("model.safetensors", file.bytes());
        return plait::describe(open_model(folder.path()));
    }

    void check_refused(errc code, std::initializer_list<char const*> parts) const
    {
        check_failure([&] { describe(); }, code, parts);
    }

    /// One field has another value.
    void check_refused(std::string const& field, std::string const& value, errc code,
                       std::initializer_list<char const*> parts) const
    {
        CAPTURE(field);
        CAPTURE(value);
        small_llama changed;
        changed.fields = fields;
        changed.tensors = tensors;
        changed.fields[field] = value;
        changed.check_refused(code, parts);
    }
};

} // namespace

TEST_CASE("a LLaMA in a Hugging Face folder is described by its config and its tensors")
{
    small_llama const files;
    auto const model = files.describe();
    auto const& spec = model.spec;
    CHECK(spec.architecture == "llama");
    CHECK(spec.name == files.folder.path().filename().string());
    CHECK(spec.width == 8);
    CHECK(spec.vocabulary == 10);
    CHECK(spec.context == 64);
    CHECK(spec.fingerprint == open_model(files.folder.path()).tensors().fingerprint());
    CHECK_FALSE(spec.tied_output);
    CHECK(spec.final_norm.epsilon == 1e-5f);
    REQUIRE(spec.layers.size() == 1);
    auto const& layer = spec.layers[0];
    CHECK(layer.placement == norm_placement::pre);
    CHECK(layer.attention.heads == 2);
    CHECK(layer.attention.kv_heads == 1);
    CHECK(layer.attention.head_dim == 4);
    CHECK(layer.attention.scale == 0.5f);
    CHECK(layer.attention.window == 0);
    CHECK_FALSE(layer.attention.query_key_value_bias);
    CHECK(layer.attention.rope.style == rope_style::halves);
    CHECK(layer.attention.rope.dims == 4);
    CHECK(layer.attention.rope.base == 10000.0f);
    CHECK(layer.attention.rope.factors.empty());
    CHECK(layer.ffn.hidden == 16);
    CHECK(layer.ffn.gated);
    CHECK(model.tensors.token_embedding.name == "model.embed_tokens.weight");
    CHECK(model.tensors.output.name == "lm_head.weight");
    CHECK(model.tensors.layers[0].ffn.down.name == "model.layers.0.mlp.down_proj.weight");
}

TEST_CASE("a tied output needs no matrix, and one that is there all the same is not a stray")
{
    small_llama files;
    files.fields["tie_word_embeddings"] = "true";
    CHECK(files.describe().spec.tied_output);
    files.tensors.erase("lm_head.weight");
    CHECK(files.describe().tensors.output.empty());
    files.fields["tie_word_embeddings"] = "null";
    CHECK(files.describe().spec.tied_output);
    files.fields["tie_word_embeddings"] = "false";
    files.check_refused(errc::bad_file, {"tensor 'lm_head.weight'", "missing"});
}

TEST_CASE("what a config leaves out has transformers' defaults, and old names are read")
{
    small_llama files;
    files.fields.erase("rope_theta");
    files.fields.erase("num_key_value_heads");
    files.tensors["model.layers.0.self_attn.k_proj.weight"] = {8, 8};
    files.tensors["model.layers.0.self_attn.v_proj.weight"] = {8, 8};
    files.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2};
    auto const model = files.describe();
    CHECK(model.spec.layers[0].attention.kv_heads == 2);
    CHECK(model.spec.layers[0].attention.rope.base == 10000.0f);
}

TEST_CASE("a Mistral has its window in every layer, and a LLaMA none")
{
    small_llama files;
    files.fields["sliding_window"] = "16";
    CHECK(files.describe().spec.layers[0].attention.window == 0);
    files.fields["architectures"] = R"(["MistralForCausalLM"])";
    files.fields["model_type"] = R"("mistral")";
    CHECK(files.describe().spec.layers[0].attention.window == 16);
    files.fields["sliding_window"] = "null";
    CHECK(files.describe().spec.layers[0].attention.window == 0);
}

TEST_CASE("biases and a head's own size are read from what is there")
{
    small_llama files;
    files.fields["head_dim"] = "6";
    files.tensors["model.layers.0.self_attn.q_proj.weight"] = {12, 8};
    files.tensors["model.layers.0.self_attn.k_proj.weight"] = {6, 8};
    files.tensors["model.layers.0.self_attn.v_proj.weight"] = {6, 8};
    files.tensors["model.layers.0.self_attn.o_proj.weight"] = {8, 12};
    files.tensors["model.layers.0.self_attn.q_proj.bias"] = {12};
    files.tensors["model.layers.0.self_attn.k_proj.bias"] = {6};
    files.tensors["model.layers.0.self_attn.v_proj.bias"] = {6};
    files.tensors["model.layers.0.self_attn.o_proj.bias"] = {8};
    for (char const* which : {"gate", "up"})
        files.tensors["model.layers.0.mlp." + std::string(which) + "_proj.bias"] = {16};
    files.tensors["model.layers.0.mlp.down_proj.bias"] = {8};
    auto const model = files.describe();
    CHECK(model.spec.layers[0].attention.head_dim == 6);
    CHECK(model.spec.layers[0].attention.query_key_value_bias);
    CHECK(model.spec.layers[0].attention.output_bias);
    CHECK(model.spec.layers[0].ffn.bias);
    files.tensors.erase("model.layers.0.self_attn.k_proj.bias");
    files.check_refused(errc::bad_file, {"tensor 'model.layers.0.self_attn.k_proj.bias'", "missing"});
}

TEST_CASE("every way to stretch the rotation is read from either field")
{
    auto const rope_of = [](std::string const& field, std::string const& value) {
        small_llama files;
        files.fields[field] = value;
        return files.describe().spec.layers[0].attention.rope;
    };
    CHECK(rope_of("rope_scaling", R"({"type": "linear", "factor": 4.0})").linear_scale == 4.0f);
    CHECK(rope_of("rope_scaling", R"({"rope_type": "default"})").linear_scale == 1.0f);
    CHECK(rope_of("rope_parameters", R"({"rope_type": "default", "rope_theta": 500.0})").base == 500.0f);
    CHECK(rope_of("rope_parameters", R"({"rope_type": "default", "partial_rotary_factor": 0.5})").dims == 2);
    CHECK(rope_of("partial_rotary_factor", "0.5").dims == 2);
    auto const llama3 = rope_of("rope_scaling", R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 32})");
    REQUIRE(llama3.factors.size() == 2);
    CHECK(llama3.factors[0] == 1.0f); // a wavelength of 2 pi is below 32 / 4
    CHECK(llama3.factors[1] == 8.0f);
    auto const yarn = rope_of("rope_scaling", R"({"rope_type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 32})");
    CHECK(yarn.factors.size() == 2);
    CHECK(yarn.magnitude == doctest::Approx(0.1 * std::log(4.0) + 1));
    CHECK(rope_of("rope_scaling", R"({"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.5})").magnitude ==
          1.5f);
    CHECK(rope_of("rope_scaling", R"({"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0})")
              .magnitude == 1.0f);
}

TEST_CASE("a list of the layers' kinds that does not fit them is refused")
{
    small_llama files;
    files.fields["architectures"] = R"(["Qwen2ForCausalLM"])";
    files.fields["model_type"] = R"("qwen2")";
    for (char const* which : {"q", "k", "v"})
        files.tensors["model.layers.0.self_attn." + std::string(which) + "_proj.bias"] = {*which == 'q' ? 8u : 4u};
    files.fields["use_sliding_window"] = "true";
    files.fields["sliding_window"] = "16";
    auto const window = [&](std::string const& types) {
        files.fields["layer_types"] = types;
        return files.describe().spec.layers[0].attention.window;
    };
    CHECK(window(R"(["sliding_attention"])") == 16);
    CHECK(window(R"(["full_attention", "sliding_attention"])") == 0);
    files.check_refused("layer_types", "[]", errc::bad_file, {"'layer_types': has 0 entries for 1 layers"});
    files.check_refused("layer_types", "\"full_attention\"", errc::bad_file, {"'layer_types': is a string"});
    files.check_refused("layer_types", R"(["linear_attention"])", errc::unsupported,
                        {"'layer_types': 'linear_attention' is not computed"});
    files.fields["layer_types"] = R"(["sliding_attention"])";
    files.check_refused("sliding_window", "0", errc::bad_file, {"'sliding_window': 0 is not between 1 and"});
    files.check_refused("sliding_window", "-5", errc::bad_file, {"'sliding_window': -5"});
}

TEST_CASE("a mixture that a config only claims is refused by the field or the tensor that is missing")
{
    small_llama files;
    files.fields["architectures"] = R"(["MixtralForCausalLM"])";
    files.fields["model_type"] = R"("mixtral")";
    files.fields["num_local_experts"] = "4";
    files.fields["num_experts_per_tok"] = "2";
    auto const refused = [&](std::string const& field, std::string const& value,
                             std::initializer_list<char const*> parts) {
        small_llama changed;
        changed.fields = files.fields;
        changed.tensors = files.tensors;
        changed.fields[field] = value;
        CAPTURE(field);
        CAPTURE(value);
        changed.check_refused(errc::bad_file, parts);
    };
    refused("num_local_experts", "1025", {"'num_local_experts': 1025 is not between 1 and 1024"});
    refused("num_local_experts", "0", {"'num_local_experts': 0"});
    refused("num_local_experts", "-1", {"'num_local_experts': -1"});
    refused("num_local_experts", "4", {"tensor '", "missing"});
    refused("num_experts_per_tok", "0", {"'num_experts_per_tok': 0"});
    refused("num_experts_per_tok", "null", {"'num_experts_per_tok': missing"});
}

TEST_CASE("a config that makes no sense is refused by the name of the field")
{
    small_llama const files;
    auto const refused = [&](std::string const& field, std::string const& value,
                             std::initializer_list<char const*> parts) {
        files.check_refused(field, value, errc::bad_file, parts);
    };
    refused("architectures", "[]", {"'architectures': is empty"});
    refused("architectures", "\"LlamaForCausalLM\"", {"'architectures': is a string, expected an array"});
    refused("architectures", "null", {"'architectures': missing"});
    files.check_refused("architectures", R"(["OtherForCausalLM"])", errc::unsupported,
                        {"'OtherForCausalLM' is not known; known: ", "LlamaForCausalLM"});
    refused("hidden_size", "0", {"'hidden_size': 0 is not between 1 and"});
    refused("hidden_size", "-8", {"'hidden_size': -8"});
    refused("hidden_size", "9223372036854775807", {"'hidden_size': 9223372036854775807"});
    refused("hidden_size", "null", {"'hidden_size': missing"});
    refused("hidden_size", "\"8\"", {"'hidden_size': is a string, expected an integer"});
    refused("hidden_size", "7", {"'num_attention_heads': 2 heads do not divide the width 7"});
    refused("hidden_size", "16", {"tensor 'model.embed_tokens.weight'", "[8, 10]"});
    refused("vocab_size", "11", {"tensor 'model.embed_tokens.weight'"});
    refused("num_hidden_layers", "1025", {"'num_hidden_layers': 1025 is not between 1 and 1024"});
    refused("num_hidden_layers", "1000", {"'num_hidden_layers': 1000 layers, but the files have only 12 tensors"});
    refused("num_hidden_layers", "2", {"tensor 'model.layers.1."});
    refused("num_key_value_heads", "3", {"'num_key_value_heads': 3 KV heads do not divide the 2 heads"});
    refused("num_key_value_heads", "0", {"'num_key_value_heads': 0"});
    refused("head_dim", "1073741824", {"'head_dim': heads of 1073741824; at most 4096"});
    refused("hidden_size", "1048576", {"'num_attention_heads': heads of 524288; at most 4096"});
    refused("rms_norm_eps", "1e-300", {"layer 0 norm epsilon: 0 is not a positive finite number"});
    refused("rope_theta", "1e300", {"layer 0 rope base: inf is not a positive finite number"});
    refused("head_dim", "5", {"'partial_rotary_factor': 5 is not an even number"});
    refused("rms_norm_eps", "NaN", {"'rms_norm_eps'", "not a positive finite number"});
    refused("rms_norm_eps", "1.0", {"'rms_norm_eps'", "not below 1"});
    refused("rope_theta", "Infinity", {"'rope_theta'", "not a positive finite number"});
    refused("rope_theta", "0.5", {"'rope_theta'", "not above 1"});
    refused("partial_rotary_factor", "1e300", {"'partial_rotary_factor'", "8 is not an even number"});
    refused("partial_rotary_factor", "0.1", {"'partial_rotary_factor': 0"});
    refused("max_position_embeddings", "16777217", {"'max_position_embeddings': 16777217"});
    refused("rope_scaling", R"({"type": "linear"})", {"'rope_scaling.factor': missing"});
    refused("rope_scaling", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
        "original_max_position_embeddings": 32})",
            {"'rope_scaling.high_freq_factor': is not above low_freq_factor"});
    files.check_refused("rope_scaling", R"({"type": "dynamic", "factor": 2.0})", errc::unsupported,
                        {"'rope_scaling.type': 'dynamic' scaling is not computed"});
    files.check_refused("hidden_act", "\"mish\"", errc::unsupported, {"'hidden_act': 'mish'"});
    small_llama wide;
    wide.fields["num_attention_heads"] = "1048576";
    wide.check_refused("head_dim", "4096", errc::bad_file, {"'head_dim': 1048576 heads of 4096 are too wide"});
    small_llama stray;
    stray.tensors["model.layers.0.extra_norm.weight"] = {8};
    stray.check_refused(errc::bad_file, {"tensor 'model.layers.0.extra_norm.weight'", "a norm"});
}

namespace {

/// The same as a mixture of two experts, of which one computes.
struct small_mixtral : small_llama {
    small_mixtral()
    {
        fields["architectures"] = R"(["MixtralForCausalLM"])";
        fields["model_type"] = R"("mixtral")";
        fields["num_local_experts"] = "2";
        fields["num_experts_per_tok"] = "1";
        std::erase_if(tensors, [](auto const& t) { return t.first.find(".mlp.") != t.first.npos; });
        std::string const layer = "model.layers.0.block_sparse_moe.";
        tensors[layer + "gate.weight"] = {2, 8};
        for (std::string const expert : {"0", "1"}) {
            tensors[layer + "experts." + expert + ".w1.weight"] = {16, 8};
            tensors[layer + "experts." + expert + ".w2.weight"] = {8, 16};
            tensors[layer + "experts." + expert + ".w3.weight"] = {16, 8};
        }
    }
};

/// As GLM-4.5 and DeepSeek call things: groups of experts, and one that all share.
struct small_glm : small_llama {
    small_glm()
    {
        fields["architectures"] = R"(["Glm4MoeForCausalLM"])";
        fields["model_type"] = R"("glm4_moe")";
        fields["num_experts_per_tok"] = "1";
        fields["n_routed_experts"] = "2";
        fields["moe_intermediate_size"] = "16";
        fields["n_shared_experts"] = "1";
        fields["first_k_dense_replace"] = "0";
        std::erase_if(tensors, [](auto const& t) { return t.first.find(".mlp.") != t.first.npos; });
        std::string const layer = "model.layers.0.mlp.";
        tensors[layer + "gate.weight"] = {2, 8};
        tensors[layer + "gate.e_score_correction_bias"] = {2};
        for (std::string const expert : {"experts.0", "experts.1", "shared_experts"}) {
            tensors[layer + expert + ".gate_proj.weight"] = {16, 8};
            tensors[layer + expert + ".up_proj.weight"] = {16, 8};
            tensors[layer + expert + ".down_proj.weight"] = {8, 16};
        }
    }
};

} // namespace

TEST_CASE("a mixture in a Hugging Face folder is described by its config and its tensors")
{
    auto const mixtral = small_mixtral().describe().spec.layers.at(0).ffn.experts;
    CHECK(mixtral.count == 2);
    CHECK(mixtral.used == 1);
    CHECK(mixtral.hidden == 16);
    auto const glm = small_glm().describe().spec.layers.at(0).ffn.experts;
    CHECK(glm.count == 2);
    CHECK(glm.shared_hidden == 16);
    CHECK(glm.selection_bias);
    small_glm dense;
    dense.fields["first_k_dense_replace"] = "1";
    dense.check_refused(errc::bad_file, {"'model.layers.0.mlp.gate_proj.weight': missing"});
}

TEST_CASE("a mixture's config that makes no sense is refused by the name of the field")
{
    small_mixtral const files;
    auto const refused = [&](char const* field, char const* value, std::initializer_list<char const*> parts) {
        files.check_refused(field, value, errc::bad_file, parts);
    };
    refused("num_local_experts", "0", {"'num_local_experts': 0 is not between 1 and"});
    refused("num_local_experts", "-2", {"'num_local_experts': -2"});
    refused("num_local_experts", "9223372036854775807", {"'num_local_experts': 9223372036854775807 is not between"});
    refused("num_local_experts", "1073741824", {"'num_local_experts': 1073741824 is not between"});
    refused("num_local_experts", "1",
            {"'num_local_experts': 1 experts, but 'model.layers.0.block_sparse_moe.gate.weight' has 2 rows"});
    refused("num_local_experts", "\"2\"", {"'num_local_experts': is a string"});
    refused("num_experts_per_tok", "0", {"'num_experts_per_tok': 0"});
    refused("num_experts_per_tok", "3", {"experts used: 3 is not between 1 and 2"});
    refused("num_experts_per_tok", "null", {"'num_experts_per_tok': missing"});
    refused("intermediate_size", "0", {"'intermediate_size': 0"});
    refused("intermediate_size", "17", {"tensor 'model.layers.0.block_sparse_moe.experts.0.w1.weight'", "[8, 17]"});
}

TEST_CASE("a mixture's tensors must be there, all and no more")
{
    std::string const layer = "model.layers.0.block_sparse_moe.";
    auto const without = [&](std::string const& name) {
        small_mixtral less;
        REQUIRE(less.tensors.erase(layer + name) == 1);
        less.check_refused(errc::bad_file, {name.c_str()});
    };
    without("gate.weight");
    for (auto const* part : {"w1", "w2", "w3"})
        without(std::string("experts.1.") + part + ".weight");
    small_mixtral more;
    more.tensors[layer + "experts.2.w1.weight"] = {16, 8};
    more.check_refused(errc::bad_file, {"experts.2.w1.weight", "experts that the header does not declare"});
    small_mixtral wide;
    wide.tensors[layer + "gate.weight"] = {2, 9};
    wide.check_refused(errc::bad_file, {"'model.layers.0.block_sparse_moe.gate.weight'", "[8, 2]"});
}

TEST_CASE("groups and shared experts that make no sense are refused")
{
    small_glm const files;
    auto const refused = [&](char const* field, char const* value, std::initializer_list<char const*> parts) {
        files.check_refused(field, value, errc::bad_file, parts);
    };
    refused("n_routed_experts", "3", {"'n_routed_experts': 3 experts, but"});
    refused("moe_intermediate_size", "0", {"'moe_intermediate_size': 0"});
    refused("n_shared_experts", "-1", {"'n_shared_experts': -1"});
    refused("n_shared_experts", "1073741824", {"'n_shared_experts': 1073741824"});
    refused("n_shared_experts", "2", {"shared_experts.gate_proj.weight"});
    refused("n_group", "0", {"'n_group': 0"});
    refused("n_group", "3", {"groups"});
    refused("topk_group", "2", {"groups"});
    refused("routed_scaling_factor", "NaN", {"'routed_scaling_factor'"});
    refused("routed_scaling_factor", "-1", {"'routed_scaling_factor'"});
    refused("decoder_sparse_step", "0", {"'decoder_sparse_step': 0"});
    refused("num_nextn_predict_layers", "1000000000000", {"'num_nextn_predict_layers'"});
    refused("num_nextn_predict_layers", "-1", {"'num_nextn_predict_layers'"});
}
