#include <plait/model/files/hf_directory.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/model/files/safetensors_index.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/safetensors_writer.hpp>
#include <plait/tests/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;
using test::safetensors_writer;
using test::temporary_folder;

namespace {

std::vector<std::byte> one_tensor(std::string_view name, float value)
{
    safetensors_writer file;
    file.add(name, "F32", {1}, test::encode(ggml_type::f32, std::vector<float>{value}));
    return file.bytes();
}

float value_of(hf_directory const& model, std::string_view name)
{
    float value = 0;
    model.read(model.tensor(name), 0, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

constexpr char index_name[] = "model.safetensors.index.json";

/// A folder with two shards; `index` and the config may be replaced.
struct sharded {
    temporary_folder folder;

    sharded()
    {
        folder.write("config.json", R"({"model_type": "llama", "hidden_size": 4})");
        folder.write("model-00001-of-00002.safetensors", one_tensor("a", 1));
        folder.write("model-00002-of-00002.safetensors", one_tensor("b", 2));
        map(R"("a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors")");
    }

    void map(std::string const& entries) const
    {
        folder.write(index_name, R"({"metadata": {"total_size": 8}, "weight_map": {)" + entries + "}}");
    }

    void check_refused(errc code, std::initializer_list<char const*> parts) const
    {
        check_failure([&] { hf_directory::open(folder.path()); }, code, parts);
    }
};

} // namespace

TEST_CASE("a folder with one file of weights is a source of tensors")
{
    temporary_folder const folder;
    folder.write("config.json", R"({"model_type": "llama"})");
    folder.write("model.safetensors", one_tensor("weight", 3));
    auto opened = hf_directory::open(folder.path());
    auto const model = std::move(opened);
    CHECK(model.source() == folder.path().string());
    CHECK(model.folder() == folder.path());
    CHECK(model.config().string("model_type") == "llama");
    CHECK(model.generation_config() == nullptr);
    CHECK(model.tokenizer_config() == nullptr);
    CHECK(model.chat_template().empty());
    REQUIRE(model.tensors().size() == 1);
    CHECK(value_of(model, "weight") == 3);
    CHECK(model.find_tensor("bias") == nullptr);
    CHECK_NOTHROW(model.check_unchanged());
    folder.write("model.safetensors", one_tensor("weights", 3));
    check_failure([&] { model.check_unchanged(); }, errc::io, {"model.safetensors", "was changed"});
}

TEST_CASE("a folder of shards is one source, and its fingerprint follows every part")
{
    sharded const at;
    auto const fingerprint = [&] { return hf_directory::open(at.folder.path()).fingerprint(); };
    auto const model = hf_directory::open(at.folder.path());
    REQUIRE(model.tensors().size() == 2);
    CHECK(value_of(model, "a") == 1);
    CHECK(value_of(model, "b") == 2);
    CHECK(model.tensor("b").file == 1);
    auto const original = model.fingerprint();
    CHECK(fingerprint() == original);
    at.folder.write("model-00002-of-00002.safetensors", one_tensor("b", 3));
    CHECK(fingerprint() != original);
    at.folder.write("model-00002-of-00002.safetensors", one_tensor("b", 2));
    CHECK(fingerprint() == original);
    at.folder.write("config.json", R"({"model_type": "llama", "hidden_size": 5})");
    CHECK(fingerprint() != original);
}

TEST_CASE("one file of weights goes before an index, as in transformers")
{
    sharded const at;
    at.folder.write("model.safetensors", one_tensor("a", 7));
    CHECK(value_of(hf_directory::open(at.folder.path()), "a") == 7);
}

TEST_CASE("shards that do not fit their index are refused by name")
{
    sharded const at;
    at.map(R"("a": "model-00001-of-00002.safetensors")");
    CHECK(hf_directory::open(at.folder.path()).tensors().size() == 1); // the second shard is not part of the model
    at.map(R"("a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors")");
    at.check_refused(errc::bad_file, {index_name, "tensor 'b'", "listed in model-00001-of-00002.safetensors, missing"});
    at.map(R"("a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors")");
    at.check_refused(errc::bad_file, {"tensor 'b'", "not listed, but model-00002-of-00002.safetensors has it"});
    at.map(R"("a": "model-00002-of-00002.safetensors", "b": "model-00002-of-00002.safetensors")");
    at.check_refused(errc::bad_file, {"tensor 'a'", "missing there"});
    at.map(R"("a": "model-00001-of-00002.safetensors", "b": "model-00003-of-00003.safetensors")");
    at.check_refused(errc::not_found, {"model-00003-of-00003.safetensors"});
    at.folder.write("model-00002-of-00002.safetensors", one_tensor("a", 2));
    at.map(R"("a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors")");
    at.check_refused(errc::bad_file, {"tensor 'a'", "listed in model-00001-of-00002.safetensors, but model-00002"});
}

TEST_CASE("an index that names files elsewhere is refused before anything is opened")
{
    sharded const at;
    for (char const* name :
         {"../model.safetensors", "/etc/model.safetensors", "sub/model.safetensors", "..", ".safetensors",
          ".hidden.safetensors", "model.bin", "", "a\\\\b.safetensors", "c:x.safetensors", "a\\u0000.safetensors"}) {
        CAPTURE(name);
        at.map(R"("a": ")" + std::string(name) + "\"");
        at.check_refused(errc::bad_file, {"tensor 'a'", "is not the name of a safetensors file in this folder"});
    }
}

TEST_CASE("an index that is not a map of names is refused")
{
    auto const refused = [](std::string_view text, std::initializer_list<char const*> parts) {
        CAPTURE(text);
        check_failure([&] { safetensors_index::parse(text, "index"); }, errc::bad_file, parts);
    };
    refused("", {"index: byte 0"});
    refused("3", {"expected an object"});
    refused("[]", {"expected an object"});
    refused("{}", {"'weight_map'", "missing"});
    refused(R"({"weight_map": []})", {"'weight_map'", "missing, or not an object"});
    refused(R"({"weight_map": {}})", {"'weight_map'", "is empty"});
    refused(R"({"weight_map": {"a": 1}})", {"'a'", "expected a string"});
    refused(R"({"weight_map": {"a": ["x"]}})", {"'a'", "expected a string"});
    refused(R"({"weight_map": {"a": {}}})", {"'a'", "expected a string"});
    refused(R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})", {"key 'a' appears twice"});
    refused(R"({"metadata": {"weight_map": {"a": "x.safetensors"}}})", {"'weight_map'", "missing"});
    refused(R"({"metadata":)" + std::string(100, '['), {"nested deeper than 16 levels"});
    std::string shards;
    for (int i = 0; i <= 4096; ++i)
        shards += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"" + std::to_string(i) + ".safetensors\"";
    refused(R"({"weight_map": {)" + shards + "}}", {"more than 4096 shards"});
    auto const good = safetensors_index::parse(R"({"metadata": {"total_size": 8, "x": [null, true, 0.5, "s"]},
        "weight_map": {"b": "y.safetensors", "a": "x.safetensors", "c": "x.safetensors"}, "more": 1})");
    CHECK(good.shards == std::vector<std::string>{"x.safetensors", "y.safetensors"});
    CHECK(good.shard_of.at("b") == 1);
    CHECK(good.shard_of.at("c") == 0);
}

TEST_CASE("a folder without a model says what it lacks")
{
    temporary_folder const folder;
    auto const refused = [&](errc code, std::initializer_list<char const*> parts) {
        check_failure([&] { hf_directory::open(folder.path()); }, code, parts);
    };
    check_failure([&] { hf_directory::open(folder.path() / "none"); }, errc::not_found, {"none: is not a folder"});
    refused(errc::not_found, {"config.json"});
    auto const config = folder.write("config.json", "{}");
    check_failure([&] { hf_directory::open(config); }, errc::io, {"config.json: is not a folder"});
    refused(errc::not_found, {"has neither model.safetensors nor model.safetensors.index.json"});
    folder.write("pytorch_model.bin", "");
    refused(errc::unsupported, {"pytorch_model.bin", "pickles are not read"});
    folder.write("config.json", "[]");
    refused(errc::bad_file, {"config.json: is an array, expected an object"});
}

TEST_CASE("weights quantised in a way that is not read are refused by the name of the method")
{
    sharded const at;
    for (char const* method : {"gptq", "awq", "fp8", "bitsandbytes"}) {
        at.folder.write("config.json", R"({"quantization_config": {"quant_method": ")" + std::string(method) + "\"}}");
        at.check_refused(errc::unsupported, {"'quantization_config.quant_method'", method, "mxfp4 is"});
    }
    at.folder.write("config.json", R"({"text_config": {"quantization_config": {"quant_method": "gptq"}}})");
    at.check_refused(errc::unsupported, {"'text_config.quantization_config.quant_method'", "gptq"});
    at.folder.write("config.json", R"({"quantization_config": {"quant_method": "mxfp4"}})");
    CHECK(hf_directory::open(at.folder.path()).tensors().size() == 2);
}

TEST_CASE("a chat template is found where transformers would find it")
{
    sharded const at;
    auto const found = [&] { return hf_directory::open(at.folder.path()).chat_template(); };
    CHECK(found().empty());
    at.folder.write("tokenizer_config.json", R"({"chat_template": null})");
    CHECK(found().empty());
    at.folder.write("tokenizer_config.json", R"({"chat_template": "plain"})");
    CHECK(found() == "plain");
    at.folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "tools"},
        {"name": "default", "template": "usual"}]})");
    CHECK(found() == "usual");
    at.folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "first"}]})");
    CHECK(found() == "first");
    at.folder.write("tokenizer_config.json", R"({"chat_template": []})");
    CHECK(found().empty());
    at.folder.write("chat_template.json", R"({"chat_template": "processor"})");
    CHECK(found() == "processor");
    at.folder.write("chat_template.jinja", "file {{ x }}\n");
    CHECK(found() == "file {{ x }}\n");
    std::filesystem::resize_file(at.folder.path() / "chat_template.jinja", (4 << 20) + 1);
    at.check_refused(errc::bad_file, {"chat_template.jinja", "4194305 bytes"});
    std::filesystem::remove(at.folder.path() / "chat_template.jinja");
    at.folder.write("chat_template.json", R"({"chat_template": 3})");
    at.check_refused(errc::bad_file, {"chat_template.json: field 'chat_template': is an integer"});
}

TEST_CASE("the configs beside the weights are read where they are there")
{
    sharded const at;
    at.folder.write("generation_config.json", R"({"eos_token_id": [1, 2]})");
    at.folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
    auto const model = hf_directory::open(at.folder.path());
    REQUIRE(model.generation_config() != nullptr);
    CHECK(model.generation_config()->integers("eos_token_id").size() == 2);
    REQUIRE(model.tokenizer_config() != nullptr);
    CHECK(model.tokenizer_config()->string("bos_token") == "<s>");
    at.folder.write("generation_config.json", "{");
    at.check_refused(errc::bad_file, {"generation_config.json"});
}

TEST_CASE("the published MXFP4 pairs of gpt-oss give the blocks that gguf reads")
{
    temporary_folder const folder;
    folder.write("config.json", "{}");
    std::filesystem::copy(test::test_data("files/mxfp4.safetensors"), folder.path() / "model.safetensors");
    auto const model = hf_directory::open(folder.path());
    auto const golden = gguf_file::open(test::test_data("files/mxfp4.gguf"));
    REQUIRE(model.tensors().size() == 1);
    stored_tensor const& found = model.tensors()[0];
    stored_tensor const& expected = golden.tensor(found.name);
    CHECK(found.type == ggml_type::mxfp4);
    CHECK(found.dims == expected.dims);
    CHECK(found.rank == expected.rank);
    REQUIRE(found.bytes == expected.bytes);
    std::vector<std::byte> all(found.bytes);
    model.read(found, 0, all);
    auto const blocks = golden.data(expected);
    CHECK(std::equal(all.begin(), all.end(), blocks.begin(), blocks.end()));
    for (std::size_t offset = 0; offset < all.size(); ++offset)
        for (std::size_t length : {std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{40}}) {
            length = std::min(length, all.size() - offset);
            std::vector<std::byte> part(length);
            model.read(found, offset, part);
            REQUIRE(std::equal(part.begin(), part.end(), blocks.begin() + static_cast<std::ptrdiff_t>(offset)));
        }
    check_failure([&] { model.read(found, 1, all); }, errc::invalid_argument, {"not inside"});
}

TEST_CASE("a large MXFP4 tensor is assembled in pieces")
{
    constexpr std::size_t blocks = 10'000;
    safetensors_writer file;
    std::vector<std::byte> packed(blocks * 16);
    std::vector<std::byte> scales(blocks);
    for (std::size_t b = 0; b < blocks; ++b) {
        scales[b] = static_cast<std::byte>(b * 7);
        packed[b * 16] = static_cast<std::byte>(b);
    }
    file.add("w_blocks", "U8", {blocks / 10, 10, 16}, packed);
    file.add("w_scales", "U8", {blocks / 10, 10}, scales);
    temporary_folder const folder;
    folder.write("config.json", "{}");
    folder.write("model.safetensors", file.bytes());
    auto const model = hf_directory::open(folder.path());
    stored_tensor const& w = model.tensor("w");
    CHECK(shape(w) == "[320, 1000]");
    std::vector<std::byte> all(w.bytes);
    model.read(w, 0, all);
    bool same = true;
    for (std::size_t b = 0; b < blocks; ++b) {
        same = same && all[b * 17] == scales[b];
        // Elements 0 and 1 of the first byte go to the low halves of the first two.
        same = same && all[b * 17 + 1] == (packed[b * 16] & std::byte{15}) && all[b * 17 + 2] == packed[b * 16] >> 4;
    }
    CHECK(same);
}

TEST_CASE("MXFP4 pairs that do not fit are refused by name")
{
    auto const refused = [](std::vector<std::uint64_t> const& blocks, std::vector<std::uint64_t> const& scales,
                            char const* scales_name, char const* type, std::initializer_list<char const*> parts) {
        auto const count = [](std::vector<std::uint64_t> const& dims) {
            std::uint64_t n = 1;
            for (auto d : dims)
                n *= d;
            return static_cast<std::size_t>(n);
        };
        safetensors_writer file;
        file.add("w_blocks", "U8", blocks, std::vector<std::byte>(count(blocks)));
        file.add(scales_name, type, scales, std::vector<std::byte>(count(scales)));
        temporary_folder const folder;
        folder.write("config.json", "{}");
        folder.write("model.safetensors", file.bytes());
        check_failure([&] { hf_directory::open(folder.path()); }, errc::bad_file, parts);
    };
    refused({1, 2, 3, 16}, {1, 2, 3}, "v_scales", "U8", {"'w_blocks'", "has no U8 scales 'w_scales'"});
    refused({1, 2, 3, 16}, {1, 2, 3}, "w_scales", "I8", {"'w_blocks'", "has no U8 scales"});
    refused({1, 2, 3, 8}, {1, 2, 3}, "w_scales", "U8", {"'w_blocks'", "expected the shape [16,", "found [8, 3, 2, 1]"});
    refused({16}, {1}, "w_scales", "U8", {"'w_blocks'", "expected the shape"});
    refused({1, 2, 3, 16}, {1, 3, 2}, "w_scales", "U8", {"'w_scales'", "[2, 3, 1] does not fit [16, 3, 2, 1]"});

    safetensors_writer file;
    file.add("w_blocks", "U8", {1, 1, 16}, std::vector<std::byte>(16));
    file.add("w_scales", "U8", {1, 1}, std::vector<std::byte>(1));
    file.add("w", "U8", {1}, std::vector<std::byte>(1));
    temporary_folder const folder;
    folder.write("config.json", "{}");
    folder.write("model.safetensors", file.bytes());
    check_failure([&] { hf_directory::open(folder.path()); }, errc::bad_file, {"'w_blocks'", "'w' is there, too"});
}
