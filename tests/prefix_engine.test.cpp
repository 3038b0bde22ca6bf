#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/small_tokenizer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

// An engine on a model whose prompts see all of themselves (ChatGLM-6B).

using namespace plait;
using namespace plait::test;

namespace {

/// A random ChatGLM-6B of two layers, as published, with a small tokenizer.
class prefix_model {
public:
    prefix_model()
    {
        constexpr std::uint64_t width = 64, vocabulary = 96;
        matrix("transformer.word_embeddings", vocabulary, width, 1.0f);
        matrix("lm_head", vocabulary, width, 1.0f);
        for (int i = 0; i < 2; ++i) {
            auto const layer = "transformer.layers." + std::to_string(i) + ".";
            norm(layer + "input_layernorm", width);
            both(layer + "attention.query_key_value", 3 * width, width);
            both(layer + "attention.dense", width, width);
            norm(layer + "post_attention_layernorm", width);
            both(layer + "mlp.dense_h_to_4h", 4 * width, width);
            both(layer + "mlp.dense_4h_to_h", width, 4 * width);
        }
        norm("transformer.final_layernorm", width);
        folder_.write("model.safetensors", file_.bytes());
        folder_.write("config.json", R"({"architectures": ["ChatGLMModel"], "model_type": "chatglm", "hidden_size": 64,
            "inner_hidden_size": 256, "layernorm_epsilon": 1e-05, "max_sequence_length": 512,
            "num_attention_heads": 4, "num_layers": 2, "position_encoding_2d": true, "vocab_size": 96})");
        folder_.write("tokenizer.json", small_tokenizer(96));
    }

    std::filesystem::path const& path() const { return folder_.path(); }

private:
    void add(std::string const& name, std::vector<std::uint64_t> shape, std::uint64_t count, float around, float spread)
    {
        std::normal_distribution<float> normal(around, spread);
        std::vector<float> values(count);
        for (auto& value : values)
            value = normal(random_);
        auto const bytes = std::as_bytes(std::span(values));
        file_.add(name, "F32", std::move(shape), {bytes.begin(), bytes.end()});
    }
    void matrix(std::string const& name, std::uint64_t rows, std::uint64_t cols, float spread)
    {
        add(name + ".weight", {rows, cols}, rows * cols, 0, spread);
    }
    void both(std::string const& name, std::uint64_t rows, std::uint64_t cols)
    {
        matrix(name, rows, cols, 0.2f);
        add(name + ".bias", {rows}, rows, 0, 0.1f);
    }
    void norm(std::string const& name, std::uint64_t width)
    {
        add(name + ".weight", {width}, width, 1, 0.2f);
        add(name + ".bias", {width}, width, 0, 0.1f);
    }

    std::mt19937_64 random_{20230314};
    safetensors_writer file_;
    temporary_folder folder_;
};

std::vector<std::int32_t> prompt_of(std::size_t length, std::int32_t first)
{
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < length; ++i)
        out.push_back(static_cast<std::int32_t>(3 + (static_cast<std::size_t>(first) + 7 * i) % 90));
    return out;
}

/// The likeliest tokens after a prompt of which all but the last token see each other (`prefix` tokens do), by a
/// decoder of its own.
task<std::vector<std::int32_t>> continued(runtime& rt, std::filesystem::path const& model,
                                          std::vector<std::int32_t> prompt, std::int32_t prefix, int count)
{
    model_probe::options how(model);
    how.positions = 256;
    how.prefix = prefix;
    auto probe = make_probe(rt, 1);
    co_await ask<&model_probe::load>(probe, std::move(how));
    std::vector<std::int32_t> out;
    auto next = std::move(prompt);
    std::int32_t position = 0;
    for (int i = 0; i < count; ++i) {
        auto const length = static_cast<std::int32_t>(next.size());
        std::vector<probe_chunk> chunks;
        chunks.emplace_back(0, position, std::move(next), false);
        auto const logits = co_await ask<&model_probe::run>(probe, std::move(chunks));
        out.push_back(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
        next.assign(1, out.back());
        position += length;
    }
    co_await stop(probe);
    co_return out;
}

request tokens_after(std::vector<std::int32_t> prompt, std::int64_t count)
{
    auto what = ask_for("", count);
    what.tokens = std::move(prompt);
    return what;
}

} // namespace

CO_TEST_CASE("prompts that see all of themselves are answered in company as alone, and the engine sees to their prefix")
{
    prefix_model const model;
    auto options = tiny_engine(model.path());
    options.context = 256;
    options.step_tokens = 64;
    auto running = co_await open(rt, options);
    std::vector<request> requests;
    std::vector<std::vector<std::int32_t>> expected;
    bool matters = false;
    for (std::size_t i = 0; i < 6; ++i) {
        auto const prompt = prompt_of(2 + 11 * i, static_cast<std::int32_t>(5 * i));
        auto const length = static_cast<std::int32_t>(prompt.size());
        auto const tokens = co_await continued(rt, model.path(), prompt, length - 1, 20);
        auto const causal = co_await continued(rt, model.path(), prompt, 0, 20);
        matters = matters || tokens != causal;
        expected.push_back(tokens);
        requests.push_back(tokens_after(prompt, 20));
    }
    CHECK(matters);
    auto const answers = co_await collect_together(running, std::move(requests));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(answers[i].of_choice(0) == expected[i]);
    }

    // One that no step can compute together.
    auto const refused = co_await as_result(collect_from(running, tokens_after(prompt_of(66, 1), 4)));
    CHECK(refused.error() == errc::never_fits);
    co_await running.close();
}
