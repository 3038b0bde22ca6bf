// One model in several formats: the numbers that come out are those of the weights, not of the files.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/engine.hpp>
#include <plait/model/convert/convert.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>
#include <plait/tests/support/tiny_model.hpp>

using namespace plait;
using namespace plait::test;

namespace {

/// Of every position, in the reference numerics.
task<std::vector<float>> exact_logits_of(runtime& rt, std::filesystem::path model, std::vector<std::int32_t> tokens,
                                         std::optional<weight_format> quantize = {})
{
    auto how = exactly(model);
    how.quantize = quantize;
    return logits_of(rt, std::move(how), std::move(tokens));
}

std::filesystem::path family_folder(std::string const& name)
{
    return test_data("families/" + name);
}

/// Writes `file` as parts of one tensor each, called "split-00001-of-…"; the path of the first.
std::filesystem::path write_parts(temporary_folder const& folder, gguf_writer const& file)
{
    auto const count = file.tensors.size();
    std::filesystem::path first;
    for (std::size_t i = 0; i < count; ++i) {
        gguf_writer part;
        if (i == 0) part.entries = file.entries;
        part.set("split.no", static_cast<std::uint32_t>(i));
        part.set("split.count", static_cast<std::uint32_t>(count));
        part.set("split.tensors.count", static_cast<std::int32_t>(count));
        part.tensors.push_back(file.tensors[i]);
        auto const number = [](std::size_t n) {
            auto digits = std::to_string(n);
            return std::string(5 - digits.size(), '0') + digits;
        };
        auto const path = folder.write("split-" + number(i + 1) + "-of-" + number(count) + ".gguf", part.bytes());
        if (i == 0) first = path;
    }
    return first;
}

/// Writes the tensors of `from` to a shard each, with an index; the rest of the folder is copied.
void write_shards(temporary_folder const& folder, std::filesystem::path const& from)
{
    for (auto const& entry : std::filesystem::directory_iterator(from))
        if (entry.path().extension() == ".json") std::filesystem::copy(entry.path(), folder.path());
    auto const whole = safetensors_file::open(from / "model.safetensors");
    std::string index;
    std::size_t shards = 0;
    for (stored_tensor const& tensor : whole.tensors()) {
        safetensors_writer shard;
        std::vector<std::byte> data(tensor.bytes);
        whole.read(tensor, 0, data);
        std::vector<std::uint64_t> dims;
        for (unsigned d = tensor.rank; d > 0; --d)
            dims.push_back(static_cast<std::uint64_t>(tensor.dims[d - 1]));
        shard.add(tensor.name, type_name(tensor), dims, data);
        auto const file = "model-" + std::to_string(shards++) + ".safetensors";
        folder.write(file, shard.bytes());
        index += (index.empty() ? "\"" : ",\"") + std::string(tensor.name) + "\":\"" + file + "\"";
    }
    folder.write("model.safetensors.index.json", "{\"weight_map\":{" + index + "}}");
}

} // namespace

CO_TEST_CASE("a model in many GGUF files gives the bits of the same model in one")
{
    tiny_model_options shape;
    shape.weights = ggml_type::q8_0;
    temporary_folder folder;
    auto whole = folder.write("whole.gguf", tiny_model(shape).bytes());
    auto first = write_parts(folder, tiny_model(shape));
    std::vector<std::int32_t> tokens{5, 99, 7, 250, 31, 8};
    auto expected = co_await exact_logits_of(rt, whole, tokens);
    auto found = co_await exact_logits_of(rt, first, tokens);
    CHECK(found == expected);

    engine_options options;
    options.model = first;
    options.sequences = 1;
    options.context = 64;
    auto running = co_await open(rt, options);
    CHECK(running.info().spec.name == describe(open_model(whole)).spec.name);
    co_await running.close();
}

CO_TEST_CASE("a model in shards gives the bits of the same model in one file")
{
    temporary_folder folder;
    write_shards(folder, family_folder("llama"));
    golden_file golden(family_folder("llama") / "logits.golden");
    auto tokens = golden.values<std::int32_t>("tokens");
    auto expected = co_await exact_logits_of(rt, family_folder("llama"), tokens);
    auto found = co_await exact_logits_of(rt, folder.path(), tokens);
    CHECK(found == expected);
    CHECK(nmse(found, golden.values<float>("logits")) < 1e-11);
}

CO_TEST_CASE("a folder and the GGUF file that is made of it say the same, to the rounding of sums in another order")
{
    for (auto const* name :
         {"llama", "llama3", "llama_linear", "llama_yarn", "llama_bias", "mistral", "granite", "smollm3"}) {
        CAPTURE(name);
        temporary_folder folder;
        auto path = folder.path() / "model.gguf";
        convert(family_folder(name), path);
        golden_file golden(family_folder(name) / "logits.golden");
        auto tokens = golden.values<std::int32_t>("tokens");
        auto expected = co_await exact_logits_of(rt, family_folder(name), tokens);
        auto found = co_await exact_logits_of(rt, path, tokens);
        // Elements of a head that are rotated together lie elsewhere: scores are summed in another order.
        CHECK(nmse(found, expected) < 1e-11);
        CHECK(nmse(found, golden.values<float>("logits")) < 2e-11);
    }
}

CO_TEST_CASE("where the heads keep their order, a folder and the GGUF file that is made of it give the same bits")
{
    for (auto const* name : {"qwen2", "qwen3", "gemma", "gemma2", "gemma3", "olmo2", "phi3", "phi3_window", "gpt2",
                             "gptneox", "gptneox_sequential", "cohere", "cohere2", "cohere_qk_norm", "glm", "glm4"}) {
        CAPTURE(name);
        temporary_folder folder;
        auto path = folder.path() / "model.gguf";
        convert(family_folder(name), path);
        auto tokens = golden_file(family_folder(name) / "logits.golden").values<std::int32_t>("tokens");
        auto expected = co_await exact_logits_of(rt, family_folder(name), tokens);
        auto found = co_await exact_logits_of(rt, path, tokens);
        CHECK(found == expected);
    }
}

CO_TEST_CASE("weights that are quantised while they are loaded are those of a file that was quantised before")
{
    for (auto type : {ggml_type::q8_0, ggml_type::q4_1}) {
        temporary_folder folder;
        auto from = folder.path() / "float.gguf";
        auto to = folder.path() / "quantised.gguf";
        tiny_model_options shape;
        shape.tied_output = false;
        // A converted file has one type; what is quantised while loading has its ends in Q8_0.
        shape.types = {{"token_embd.weight", ggml_type::q8_0}, {"output.weight", ggml_type::q8_0}};
        write_tiny_model(from, shape);
        auto quantised = shape;
        quantised.weights = type;
        write_tiny_model(to, quantised);
        std::vector<std::int32_t> tokens{5, 99, 7, 250, 31, 8};
        auto expected = co_await exact_logits_of(rt, to, tokens);
        auto plain = co_await exact_logits_of(rt, from, tokens);
        auto found = co_await exact_logits_of(rt, from, tokens, *computable(type));
        CHECK(found == expected);
        CHECK(found != plain);
        CHECK(nmse(found, plain) < 0.05);
    }
}

CO_TEST_CASE("a plan of weights that are quantised while loading is smaller, and a wrong type is refused")
{
    temporary_folder folder;
    engine_options options;
    options.model = folder.path() / "model.gguf";
    options.context = 64;
    options.sequences = 1;
    write_tiny_model(options.model);
    auto const bytes = [&] {
        std::int64_t sum = 0;
        for (auto const& line : plan(options).lines)
            if (line.name == "layers") sum += line.bytes;
        return sum;
    };
    auto plain = bytes();
    options.quantize = weight_format::q8_0;
    auto eight = bytes();
    options.quantize = weight_format::q4_1;
    auto four = bytes();
    CHECK(eight < plain / 3);
    CHECK(four < eight);
    options.quantize = weight_format::q6_k;
    std::optional<errc> seen;
    try {
        plan(options);
    } catch (error const& failure) {
        seen = failure.condition();
    }
    CHECK(seen == errc::invalid_argument);
    co_return;
}

CO_TEST_CASE("a tokenizer of more tokens than the embedding has is refused with both numbers")
{
    temporary_folder folder;
    for (char const* name : {"config.json", "model.safetensors"})
        std::filesystem::copy(family_folder("llama") / name, folder.path());
    std::filesystem::copy(test_data("tokenizer/kinds/llama3/tokenizer.json"), folder.path());
    engine_options options;
    options.model = folder.path();
    options.context = 64;
    options.sequences = 1;
    auto outcome = co_await as_result(open(rt, options));
    CHECK(outcome.error() == errc::bad_file);
    std::string text;
    try {
        static_cast<void>(std::move(outcome).value());
    } catch (error const& failure) {
        text = failure.what();
    }
    CAPTURE(text);
    CHECK(text.find("tokenizer: 560 tokens, but the embedding has 96") != std::string::npos);
}

CO_TEST_CASE("a file that changes while its weights are loaded is an error, not a model")
{
    temporary_folder folder;
    auto config = family_folder("llama") / "config.json";
    std::filesystem::copy(config, folder.path());
    std::filesystem::copy(family_folder("llama") / "model.safetensors", folder.path());
    auto files = open_model(folder.path());
    auto model = describe(files);
    std::filesystem::resize_file(folder.path() / "model.safetensors", 20'000);
    std::optional<errc> seen;
    try {
        for (stored_tensor const& tensor : files.tensors().tensors()) {
            std::vector<std::byte> all(tensor.bytes);
            files.tensors().read(tensor, 0, all);
        }
    } catch (error const& failure) {
        seen = failure.condition();
    }
    CHECK(seen == errc::io);
    co_return;
}
