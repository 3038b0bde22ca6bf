#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/model/convert/convert.hpp>
#include <plait/model/convert/gguf_plan.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

// Models that were converted compute what they did before.

using namespace plait;
using namespace plait::test;
namespace fs = std::filesystem;

namespace {

/// Of every architecture that is written, which is all that plait reads but GPT-1.
std::vector<std::string> family_folders()
{
    auto const written = written_architectures();
    std::vector<std::string> out;
    for (auto const& entry : fs::directory_iterator(test_data("families"))) {
        auto const config = entry.path() / "config.json";
        if (!fs::exists(config)) continue;
        auto const names = json_config::open(config).strings("architectures");
        if (std::ranges::find(written, names.at(0)) != written.end()) out.push_back(entry.path().filename().string());
    }
    std::ranges::sort(out);
    return out;
}

std::vector<std::int32_t> tokens_of(fs::path const& family)
{
    return golden_file(family / "logits.golden").values<std::int32_t>("tokens");
}

model_probe::options probe_of(fs::path const& model)
{
    auto how = exactly(model, 128);
    how.stretched_positions = !describe(open_model(model)).spec.layers.front().attention.rope.long_factors.empty();
    return how;
}

std::vector<std::byte> bytes_of(tensor_source const& files, std::string_view name)
{
    auto const& tensor = files.tensor(name);
    std::vector<std::byte> out(tensor.bytes);
    files.read(tensor, 0, out);
    return out;
}

/// The folder of GLM-4-9B-hf as ChatGLM2 and 3 and the first GLM-4-9B were published: other names, fused matrices.
class chatglm_folder {
public:
    chatglm_folder()
        : source_(test_data("families/glm"))
        , files_(open_model(source_))
    {
        auto const config = json_config::open(source_ / "config.json");
        auto const number = [&](char const* field) { return std::to_string(config.integer(field)); };
        folder.write(
            "config.json",
            R"({"architectures": ["ChatGLMForConditionalGeneration"], "model_type": "chatglm", "hidden_size": )" +
                number("hidden_size") + R"(, "ffn_hidden_size": )" + number("intermediate_size") +
                R"(, "layernorm_epsilon": 1e-05, "seq_length": 128, "num_attention_heads": )" +
                number("num_attention_heads") + R"(, "num_layers": )" + number("num_hidden_layers") +
                R"(, "kv_channels": )" + number("head_dim") +
                R"(, "multi_query_attention": true, "multi_query_group_num": )" + number("num_key_value_heads") +
                R"(, "add_qkv_bias": true, "post_layer_norm": true, "rmsnorm": true, "padded_vocab_size": )" +
                number("vocab_size") + "}");
        std::string const to = "transformer.encoder.";
        copy("model.embed_tokens.weight", "transformer.embedding.word_embeddings.weight");
        copy("lm_head.weight", "transformer.output_layer.weight");
        copy("model.norm.weight", to + "final_layernorm.weight");
        for (std::int64_t i = 0; i < config.integer("num_hidden_layers"); ++i) {
            std::string const layer = "layers." + std::to_string(i) + ".";
            std::string const from = "model." + layer, at = to + layer;
            copy(from + "input_layernorm.weight", at + "input_layernorm.weight");
            copy(from + "post_attention_layernorm.weight", at + "post_attention_layernorm.weight");
            for (std::string const kind : {"weight", "bias"})
                join({from + "self_attn.q_proj." + kind, from + "self_attn.k_proj." + kind,
                      from + "self_attn.v_proj." + kind},
                     at + "self_attention.query_key_value." + kind);
            copy(from + "self_attn.o_proj.weight", at + "self_attention.dense.weight");
            copy(from + "mlp.gate_up_proj.weight", at + "mlp.dense_h_to_4h.weight");
            copy(from + "mlp.down_proj.weight", at + "mlp.dense_4h_to_h.weight");
        }
        folder.write("model.safetensors", weights_.bytes());
        for (auto const* name : {"tokenizer.json", "tokenizer_config.json"})
            fs::copy_file(source_ / name, folder.path() / name);
    }

    temporary_folder folder;

private:
    void copy(std::string const& from, std::string const& to) { join({from}, to); }

    /// Rows of some tensors, one behind the other.
    void join(std::vector<std::string> const& from, std::string const& to)
    {
        std::vector<std::byte> all;
        std::uint64_t rows = 0;
        stored_tensor const* last = nullptr;
        for (auto const& name : from) {
            last = &files_.tensors().tensor(name);
            auto const bytes = bytes_of(files_.tensors(), name);
            all.insert(all.end(), bytes.begin(), bytes.end());
            rows += static_cast<std::uint64_t>(last->rank == 1 ? last->cols() : last->rows());
        }
        std::vector<std::uint64_t> shape{rows};
        if (last->rank > 1) shape.push_back(static_cast<std::uint64_t>(last->cols()));
        weights_.add(to, "BF16", std::move(shape), std::move(all));
    }

    fs::path source_;
    model_files files_;
    safetensors_writer weights_;
};

} // namespace

CO_TEST_CASE("a converted model has the logits of its folder")
{
    auto const families = family_folders();
    CHECK(families.size() >= 31);
    for (auto const& name : families) {
        CAPTURE(name);
        auto const source = test_data("families/" + name);
        temporary_folder const folder;
        auto const converted = folder.path() / "model.gguf";
        convert(source, converted);
        auto const tokens = tokens_of(source);
        auto const before = co_await logits_of(rt, probe_of(source), tokens);
        auto const after = co_await logits_of(rt, probe_of(converted), tokens);
        auto const style = [](fs::path const& model) {
            return describe(open_model(model)).spec.layers.front().attention.rope.style;
        };
        // Where rows have another order, so have the summands of a score.
        if (style(source) == style(converted))
            CHECK(after == before);
        else
            CHECK(nmse(after, before) < 1e-11);
    }
}

CO_TEST_CASE(
    "ChatGLM2's layout becomes the fused one of llama.cpp's files, with the logits of the same model otherwise")
{
    chatglm_folder const made;
    auto const tokens = tokens_of(test_data("families/glm"));
    auto const expected = co_await logits_of(rt, probe_of(test_data("families/glm")), tokens);
    auto const before = co_await logits_of(rt, probe_of(made.folder.path()), tokens);
    CHECK(before == expected);
    auto const converted = made.folder.path() / "model.gguf";
    convert(made.folder.path(), converted);
    auto const after = co_await logits_of(rt, probe_of(converted), tokens);
    CHECK(after == expected);
    auto const file = gguf_file::open(converted);
    CHECK(file.string("general.architecture") == "chatglm");
    CHECK(file.find_tensor("blk.0.attn_qkv.weight") != nullptr);
    CHECK(file.find_tensor("blk.1.attn_qkv.bias") != nullptr);
    CHECK(file.find_tensor("blk.0.ffn_gate.weight") == nullptr);
    // Rows are those of llama.cpp's file of the same model, which has them in three tensors.
    auto const theirs = gguf_file::open(test_data("families/glm/model.gguf"));
    std::vector<std::byte> rows;
    for (auto const* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"}) {
        auto const part = bytes_of(theirs, name);
        rows.insert(rows.end(), part.begin(), part.end());
    }
    CHECK(bytes_of(file, "blk.0.attn_qkv.weight") == rows);
    CHECK(bytes_of(file, "blk.0.ffn_up.weight") == bytes_of(theirs, "blk.0.ffn_up.weight"));
}

TEST_CASE("what llama.cpp has no architecture for is refused with that reason")
{
    temporary_folder const folder;
    auto const to = folder.path() / "model.gguf";
    check_failure([&] { convert(test_data("families/gpt1"), to); }, errc::unsupported,
                  {"GPT-1 is not written: llama.cpp has no architecture for it"});
    safetensors_writer weights;
    auto const add = [&](std::string const& name, std::uint64_t rows, std::uint64_t columns) {
        std::vector<std::uint64_t> shape{rows};
        if (columns > 0) shape.push_back(columns);
        weights.add(name, "BF16", shape, std::vector<std::byte>(2 * rows * std::max<std::uint64_t>(columns, 1)));
    };
    std::string const layer = "transformer.layers.0.";
    add("transformer.word_embeddings.weight", 8, 8);
    add("lm_head.weight", 8, 8);
    for (auto const& norm :
         {layer + "input_layernorm", layer + "post_attention_layernorm", std::string("transformer.final_layernorm")})
        for (auto const* kind : {".weight", ".bias"})
            add(norm + kind, 8, 0);
    for (auto const& [name, rows, columns] :
         {std::tuple("attention.query_key_value", 24, 8), std::tuple("attention.dense", 8, 8),
          std::tuple("mlp.dense_h_to_4h", 32, 8), std::tuple("mlp.dense_4h_to_h", 8, 32)}) {
        add(layer + name + ".weight", static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
        add(layer + name + ".bias", static_cast<std::uint64_t>(rows), 0);
    }
    temporary_folder const first;
    first.write("model.safetensors", weights.bytes());
    first.write("config.json", R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "hidden_size": 8,
        "inner_hidden_size": 32, "layernorm_epsilon": 1e-05, "max_sequence_length": 64, "num_attention_heads": 2,
        "num_layers": 1, "position_encoding_2d": true, "vocab_size": 8})");
    check_failure([&] { convert(first.path(), to); }, errc::unsupported,
                  {"ChatGLM-6B is not written: llama.cpp has no architecture for it"});
    CHECK_FALSE(fs::exists(to));
}

CO_TEST_CASE("a file of Mixtral with a tensor for each part of each expert is read as the one with stacks")
{
    auto const source = test_data("families/mixtral/model.gguf");
    auto const stacked = gguf_file::open(source);
    gguf_writer file;
    for (gguf_entry const& entry : stacked.metadata())
        file.copy(entry);
    for (stored_tensor const& tensor : stacked.tensors()) {
        auto const bytes = bytes_of(stacked, tensor.name);
        std::string const name(tensor.name);
        auto const cut = name.find("_exps");
        std::vector<std::uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.rank);
        if (cut == name.npos) {
            file.add(name, dims, tensor.type, bytes);
            continue;
        }
        auto const experts = static_cast<std::ptrdiff_t>(dims.back());
        auto const each = static_cast<std::ptrdiff_t>(bytes.size()) / experts;
        dims.pop_back();
        for (std::ptrdiff_t i = 0; i < experts; ++i)
            file.add(name.substr(0, cut) + "." + std::to_string(i) + ".weight", dims, tensor.type,
                     {bytes.begin() + i * each, bytes.begin() + (i + 1) * each});
    }
    temporary_folder const folder;
    auto const apart = folder.write("apart.gguf", file.bytes());
    auto expected = describe(open_model(source)).spec;
    auto const found = describe(open_model(apart)).spec;
    expected.fingerprint = found.fingerprint;
    CHECK(found == expected);
    auto const tokens = tokens_of(test_data("families/mixtral"));
    auto const before = co_await logits_of(rt, probe_of(source), tokens);
    auto const after = co_await logits_of(rt, probe_of(apart), tokens);
    CHECK(after == before);
    // And missing ones are missing.
    file.erase_tensor("blk.1.ffn_up.3.weight");
    auto const less = folder.write("less.gguf", file.bytes());
    check_failure([&] { describe(open_model(less)); }, errc::bad_file, {"'blk.1.ffn_up.3.weight': missing"});
}
