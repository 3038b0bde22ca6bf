#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

// ChatGLM in its published layouts beside what its own code says: random models of one layer, made by chatglm.cpp
// (MIT).

using namespace plait;
using namespace plait::test;

namespace {

constexpr std::uint64_t width = 32, heads = 8, vocabulary = 5;

/// A file of F32 weights, and a prompt of three tokens and two more with their hidden states.
class recorded {
public:
    explicit recorded(std::filesystem::path const& path)
    {
        std::ifstream in(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(in), {});
    }

    /// The next values: of 4 bytes, whichever they are.
    template<class T>
    std::vector<T> take(std::uint64_t count)
    {
        REQUIRE(at_ + count * sizeof(T) <= bytes_.size());
        std::vector<T> out(count);
        std::memcpy(out.data(), bytes_.data() + at_, count * sizeof(T));
        at_ += count * sizeof(T);
        return out;
    }
    bool at_end() const { return at_ == bytes_.size(); }

private:
    std::vector<char> bytes_;
    std::size_t at_ = 0;
};

/// A folder as published, whose output matrix hands out the hidden state.
class folder_maker {
public:
    folder_maker(recorded& from, bool first)
        : from_(from)
        , first_(first)
    {
        auto embedding = from_.take<float>(vocabulary * width);
        embedding.resize(width * width); // the vocabulary is as large as the width
        add(first_ ? "transformer.word_embeddings.weight" : "transformer.embedding.word_embeddings.weight",
            {width, width}, embedding);
        std::vector<float> identity(width * width);
        for (std::size_t i = 0; i < width; ++i)
            identity[i * width + i] = 1;
        add(first_ ? "lm_head.weight" : "transformer.output_layer.weight", {width, width}, identity);
        if (first_)
            make_first();
        else
            make_later();
        folder.write("model.safetensors", file_.bytes());
    }

    temporary_folder folder;

private:
    void add(std::string const& name, std::vector<std::uint64_t> shape, std::vector<float> const& values)
    {
        auto const bytes = std::as_bytes(std::span(values));
        file_.add(name, "F32", std::move(shape), {bytes.begin(), bytes.end()});
    }
    void vector(std::string const& name, std::uint64_t length) { add(name, {length}, from_.take<float>(length)); }
    void matrix(std::string const& name, std::uint64_t rows, std::uint64_t cols)
    {
        add(name, {rows, cols}, from_.take<float>(rows * cols));
    }

    void both(std::string const& name, std::uint64_t rows, std::uint64_t cols)
    {
        cols == 0 ? vector(name + ".weight", rows) : matrix(name + ".weight", rows, cols);
        vector(name + ".bias", rows);
    }

    void make_first()
    {
        std::string const layer = "transformer.layers.0.";
        both(layer + "input_layernorm", width, 0);
        both(layer + "attention.query_key_value", 3 * width, width);
        both(layer + "attention.dense", width, width);
        both(layer + "post_attention_layernorm", width, 0);
        both(layer + "mlp.dense_h_to_4h", 4 * width, width);
        both(layer + "mlp.dense_4h_to_h", width, 4 * width);
        both("transformer.final_layernorm", width, 0);
        folder.write("config.json", R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "hidden_size": 32,
            "inner_hidden_size": 128, "layernorm_epsilon": 1e-05, "max_sequence_length": 2048,
            "num_attention_heads": 8, "num_layers": 1, "position_encoding_2d": true, "vocab_size": 32})");
    }

    void make_later()
    {
        constexpr std::uint64_t kv = 2 * width / heads, hidden = 48;
        std::string const layer = "transformer.encoder.layers.0.";
        vector(layer + "input_layernorm.weight", width);
        both(layer + "self_attention.query_key_value", width + 2 * kv, width);
        matrix(layer + "self_attention.dense.weight", width, width);
        vector(layer + "post_attention_layernorm.weight", width);
        matrix(layer + "mlp.dense_h_to_4h.weight", 2 * hidden, width); // gate, then up
        matrix(layer + "mlp.dense_4h_to_h.weight", width, hidden);
        vector("transformer.encoder.final_layernorm.weight", width);
        folder.write("config.json", later_config());
    }

public:
    static std::string later_config(std::string const& more = "")
    {
        return R"({"architectures": ["ChatGLMForConditionalGeneration"], "model_type": "chatglm", "hidden_size": 32,
            "ffn_hidden_size": 48, "layernorm_epsilon": 1e-05, "seq_length": 2048, "num_attention_heads": 8,
            "num_layers": 1, "kv_channels": 4, "multi_query_attention": true, "multi_query_group_num": 2,
            "add_qkv_bias": true, "post_layer_norm": true, "rmsnorm": true, "padded_vocab_size": 32)" +
               more + "}";
    }

private:
    recorded& from_;
    bool first_;
    safetensors_writer file_;
};

/// The largest difference from the hidden states recorded, over a prompt and two tokens after it.
task<double> worst_difference(runtime& rt, recorded from, model_probe::options how)
{
    auto probe = make_probe(rt, 1);
    co_await ask<&model_probe::load>(probe, std::move(how));
    double worst = 0;
    std::int32_t position = 0;
    for (std::uint64_t const count : {std::uint64_t(3), std::uint64_t(1), std::uint64_t(1)}) {
        auto tokens = from.take<std::int32_t>(count);
        auto const expected = from.take<float>(count * width);
        std::vector<probe_chunk> chunks;
        chunks.emplace_back(0, position, std::move(tokens));
        auto const found = co_await ask<&model_probe::run>(probe, std::move(chunks));
        for (std::size_t i = 0; i < expected.size(); ++i)
            worst = std::max(worst, std::fabs(static_cast<double>(found.at(i)) - static_cast<double>(expected[i])));
        position += static_cast<std::int32_t>(count);
    }
    CHECK(from.at_end());
    co_await stop(probe);
    co_return worst;
}

constexpr double tolerance = 5e-5;

} // namespace

CO_TEST_CASE("ChatGLM-6B's hidden states are those of its own code, and each of its rules is needed for that")
{
    auto const data = shared_data("chatglm/glm_model.data");
    if (!data) {
        MESSAGE("skipped: not found: shared/data/chatglm");
        co_return;
    }
    recorded from(*data);
    folder_maker const made(from, true);
    auto how = exactly(made.folder.path(), 64);
    how.prefix = 2;
    CHECK(describe(open_model(how.model)).spec.prefix);
    auto const found = co_await worst_difference(rt, from, how);
    CHECK(found <= tolerance);

    auto blind = how;
    blind.prefix = 0;
    auto const without_prefix = co_await worst_difference(rt, from, blind);
    CHECK(without_prefix > 20 * tolerance);
    std::vector<std::function<void(layer_spec&)>> changes;
    changes.emplace_back([](layer_spec& l) { l.residual_scale = 1; });
    changes.emplace_back([](layer_spec& l) { l.placement = norm_placement::pre; });
    changes.emplace_back([](layer_spec& l) { l.attention.rope.style = rope_style::halves; });
    for (auto const& change : changes) {
        auto other = how;
        other.change = [change](model_spec& spec) { change(spec.layers.front()); };
        auto const changed = co_await worst_difference(rt, from, other);
        CHECK(changed > 20 * tolerance);
    }
}

CO_TEST_CASE("ChatGLM2's and GLM-4's hidden states are those of their own code")
{
    for (auto const* name : {"chatglm/glm2_model.data", "chatglm/glm4_model.data"}) {
        auto const data = shared_data(name);
        if (!data) {
            MESSAGE("skipped: not found: shared/data/chatglm");
            co_return;
        }
        CAPTURE(name);
        recorded from(*data);
        folder_maker const made(from, false);
        auto how = exactly(made.folder.path(), 64);
        auto const found = co_await worst_difference(rt, from, how);
        CHECK(found <= tolerance);
        how.change = [](model_spec& spec) { spec.layers.front().attention.rope.dims = 4; };
        auto const all_rotated = co_await worst_difference(rt, from, how);
        CHECK(all_rotated > 20 * tolerance);
    }
}

TEST_CASE("settings of ChatGLM2 that change what is computed are obeyed or refused by name")
{
    temporary_folder folder;
    safetensors_writer file;
    file.add("transformer.embedding.word_embeddings.weight", "F32", {1, 1}, std::vector<std::byte>(4));
    folder.write("model.safetensors", file.bytes());
    for (std::string const setting :
         {R"("apply_residual_connection_post_layernorm": true)", R"("rmsnorm": false)", R"("post_layer_norm": false)",
          R"("add_bias_linear": true)", R"("interleaved_qkv": true)", R"("original_rope": false)"}) {
        CAPTURE(setting);
        // The last of two equal fields would count; so the config is written without the plain ones.
        auto config = folder_maker::later_config(", " + setting);
        for (std::string const plain : {R"("post_layer_norm": true, )", R"("rmsnorm": true, )"})
            config.erase(config.find(plain), plain.size());
        folder.write("config.json", config);
        try {
            describe(hf_directory::open(folder.path()));
            FAIL("accepted");
        } catch (error const& e) {
            CHECK(e.condition() == errc::unsupported);
            CHECK(std::string(e.what()).find(setting.substr(1, setting.find('"', 1) - 1)) != std::string::npos);
        }
    }
}
