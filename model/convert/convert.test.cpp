#include <plait/model/convert/convert.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/convert/gguf_plan.hpp>
#include <plait/model/convert/row_codec.hpp>
#include <plait/model/files/gguf_writer.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/temporary_folder.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

using namespace plait;
using test::check_failure;
using test::temporary_folder;

namespace {

std::vector<float> values_of(tensor_source const& file, stored_tensor const& tensor)
{
    std::vector<std::byte> bytes(tensor.bytes);
    file.read(tensor, 0, bytes);
    std::vector<float> out(static_cast<std::size_t>(tensor.cols() * tensor.rows()));
    row_codec().decode(file.format(tensor), tensor.rows(), tensor.cols(), bytes.data(), out.data());
    return out;
}

bool same_bytes(gguf_file const& a, gguf_file const& b, std::string_view name)
{
    auto const x = a.data(a.tensor(name));
    auto const y = b.data(b.tensor(name));
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

std::filesystem::path folder_of(std::string const& name)
{
    return test::test_data("families/" + name);
}

/// The folders of tests/data/families whose architecture is written and of which llama.cpp has made a file.
std::vector<std::string> written_families()
{
    auto const written = written_architectures();
    std::vector<std::string> out;
    for (auto const& entry : std::filesystem::directory_iterator(test::test_data("families"))) {
        auto const config = entry.path() / "config.json";
        if (!exists(config) || !exists(entry.path() / "model.gguf")) continue;
        auto const names = json_config::open(config).strings("architectures");
        if (std::ranges::find(written, names.at(0)) != written.end()) out.push_back(entry.path().filename().string());
    }
    std::ranges::sort(out);
    return out;
}

/// Keys that llama.cpp's converter writes and plait does not, whatever the family.
bool is_left_out(gguf_file const& theirs, std::string_view key)
{
    // For people; padding is never asked for; the layers that guess ahead are left out, as by its --no-mtp.
    if (key == "general.size_label" || key == "general.quantization_version" ||
        key == "tokenizer.ggml.padding_token_id" || key.ends_with(".nextn_predict_layers"))
        return true;
    // Some say that there is none.
    if (key.ends_with("sliding_window") && theirs.u32(key) == 0) return true;
    if (key.ends_with("rope.scaling.type") && theirs.string(key) == "none") return true;
    // Without factors it says nothing.
    return key.ends_with("original_context_length") && !theirs.has("llama.rope.scaling.factor") &&
           theirs.find_tensor("rope_factors_long.weight") == nullptr;
}

/// Keys that plait writes whatever the family, and llama.cpp's converter only where the config has a field for them.
bool is_added(std::string_view key)
{
    constexpr std::array endings{"general.file_type",
                                 ".vocab_size",
                                 ".attention.head_count_kv",
                                 ".attention.key_length",
                                 ".attention.value_length",
                                 ".attention.sliding_window",
                                 ".rope.dimension_count",
                                 ".rope.freq_base",
                                 ".rope.freq_base_swa",
                                 ".rope.scaling.type",
                                 ".rope.scaling.factor",
                                 ".rope.scaling.yarn_beta_fast",
                                 ".rope.scaling.yarn_beta_slow",
                                 "tokenizer.ggml.add_eos_token"};
    return std::ranges::any_of(endings, [&](std::string_view ending) { return key.ends_with(ending); });
}

} // namespace

TEST_CASE("a Hugging Face folder becomes the file that llama.cpp's converter makes of it, tensor by tensor, key by key")
{
    auto const families = written_families();
    CHECK(families.size() >= 24);
    for (auto const& name : families) {
        CAPTURE(name);
        temporary_folder const folder;
        auto const path = folder.path() / "model.gguf";
        auto const done = convert(folder_of(name), path, {.type = {}, .name = "tiny"});
        auto const ours = gguf_file::open(path);
        auto const theirs = gguf_file::open(folder_of(name) / "model.gguf");
        CHECK(done.tensors == static_cast<std::int64_t>(ours.tensors().size()));
        auto const architecture = std::string(theirs.string("general.architecture"));
        auto const blocks = theirs.u32(architecture + ".block_count");
        auto const ahead = theirs.u32(architecture + ".nextn_predict_layers", 0);
        std::string const layer_ahead = "blk." + std::to_string(blocks - 1) + ".";
        std::size_t tensors = 0;
        for (stored_tensor const& expected : theirs.tensors()) {
            CAPTURE(std::string(expected.name));
            if (ahead > 0 && expected.name.starts_with(layer_ahead)) continue;
            ++tensors;
            REQUIRE(ours.find_tensor(expected.name) != nullptr);
            stored_tensor const& found = ours.tensor(expected.name);
            CHECK(found.type == expected.type);
            CHECK(found.dims == expected.dims);
            if (!expected.name.starts_with("rope_")) {
                CHECK(same_bytes(ours, theirs, expected.name));
                continue;
            }
            // Computed, not copied: there in F32, here in double precision.
            auto const x = values_of(ours, found);
            auto const y = values_of(theirs, expected);
            for (std::size_t i = 0; i < x.size(); ++i)
                CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-6));
        }
        CHECK(ours.tensors().size() == tensors);
        for (gguf_entry const& expected : theirs.metadata()) {
            std::string const key(expected.key);
            CAPTURE(key);
            if (is_left_out(theirs, key)) continue;
            if (key == "chatglm.context_length") continue; // the converter looks for a field of older checkpoints
            REQUIRE(ours.has(key));
            if (key == architecture + ".block_count") {
                CHECK(ours.u32(key) == blocks - ahead);
                continue;
            }
            gguf_entry const& found = *ours.find_entry(key);
            CHECK(found.type == expected.type);
            CHECK(std::equal(found.payload.begin(), found.payload.end(), expected.payload.begin(),
                             expected.payload.end()));
        }
        for (gguf_entry const& found : ours.metadata()) {
            CAPTURE(std::string(found.key));
            CHECK((theirs.has(found.key) || is_added(found.key)));
        }
    }
}

TEST_CASE("a GGUF file that is converted to what it is stays the same, but for its layout")
{
    temporary_folder const folder;
    for (auto const type : {ggml_type::f32, ggml_type::bf16, ggml_type::q4_0, ggml_type::q8_0}) {
        test::tiny_model_options options;
        options.weights = type;
        options.rope_factors = std::vector<float>(8, 2.0f);
        auto model = test::tiny_model(options);
        model.set("general.alignment", std::uint32_t{64});
        model.alignment = 64;
        auto const from = folder.write("from.gguf", model.bytes());
        double last = 0;
        auto const done = convert(from, folder.path() / "to.gguf", {}, [&](double part) {
            CHECK(part >= last);
            last = part;
        });
        CHECK(last == 1.0);
        auto const before = gguf_file::open(from);
        auto const after = gguf_file::open(folder.path() / "to.gguf");
        CHECK(done.tensors == static_cast<std::int64_t>(before.tensors().size()));
        REQUIRE(after.tensors().size() == before.tensors().size());
        for (stored_tensor const& tensor : before.tensors()) {
            CHECK(after.tensor(tensor.name).type == tensor.type);
            CHECK(same_bytes(before, after, tensor.name));
        }
        CHECK(after.metadata().size() == before.metadata().size() - 1);
        CHECK_FALSE(after.has("general.alignment"));
        CHECK(describe(after).spec.layers == describe(before).spec.layers);
    }
}

TEST_CASE("matrices take the type asked for, rounded to nearest, and vectors stay")
{
    temporary_folder const folder;
    auto const from = folder.path() / "from.gguf";
    test::write_tiny_model(from);
    auto const before = gguf_file::open(from);
    for (auto const type : {ggml_type::f16, ggml_type::bf16}) {
        auto const to = folder.path() / "to.gguf";
        convert(from, to, {.type = type, .name = "narrow"});
        auto const after = gguf_file::open(to);
        CHECK(after.string("general.name") == "narrow");
        CHECK(after.u32("general.file_type") == (type == ggml_type::f16 ? 1 : 32));
        for (stored_tensor const& tensor : before.tensors()) {
            stored_tensor const& narrow = after.tensor(tensor.name);
            if (tensor.rank == 1) {
                CHECK(narrow.type == ggml_type::f32);
                CHECK(same_bytes(before, after, tensor.name));
                continue;
            }
            REQUIRE(narrow.type == type);
            auto const x = values_of(before, tensor);
            auto const y = values_of(after, narrow);
            double const bound = type == ggml_type::f16 ? 0x1p-11 : 0x1p-8;
            bool near = true;
            for (std::size_t i = 0; i < x.size(); ++i)
                near = near && std::fabs(x[i] - y[i]) <= bound * std::fabs(x[i]) + 0x1p-25;
            CHECK(near);
        }
        // Back again loses nothing more.
        convert(to, folder.path() / "wide.gguf", {.type = ggml_type::f32, .name = {}});
        convert(folder.path() / "wide.gguf", folder.path() / "again.gguf", {.type = type, .name = {}});
        auto const again = gguf_file::open(folder.path() / "again.gguf");
        for (stored_tensor const& tensor : again.tensors())
            CHECK(same_bytes(again, after, tensor.name));
    }
}

TEST_CASE("a quantised type is that of ggml's reference, and rows that do not fit its blocks become F16")
{
    temporary_folder const folder;
    auto const from = folder.path() / "from.gguf";
    auto const to = folder.path() / "to.gguf";
    test::tiny_model_options shape;
    shape.ffn = 48; // no multiple of 32
    test::write_tiny_model(from, shape);
    auto const before = gguf_file::open(from);
    for (auto const type : {ggml_type::q8_0, ggml_type::q4_1}) {
        convert(from, to, {.type = type, .name = {}});
        auto const after = gguf_file::open(to);
        int quantised = 0;
        for (stored_tensor const& tensor : before.tensors()) {
            if (tensor.rank == 1) continue;
            stored_tensor const& narrow = after.tensor(tensor.name);
            if (tensor.cols() % 32 != 0) {
                CHECK(narrow.type == ggml_type::f16);
                continue;
            }
            REQUIRE(narrow.type == type);
            auto const expected = test::encode(type, values_of(before, tensor));
            auto const found = after.data(narrow);
            CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
            ++quantised;
        }
        CHECK(quantised > 10);
    }
}

TEST_CASE("what a GGUF file can't say is refused")
{
    temporary_folder const folder;
    auto const to = folder.path() / "model.gguf";
    // Scores that are scaled by another number than the family's.
    convert(folder_of("gemma2_scalar"), to);
    CHECK(describe(gguf_file::open(to)).spec.layers[0].attention.scale ==
          describe(open_model(folder_of("gemma2_scalar"))).spec.layers[0].attention.scale);
    std::filesystem::remove(to);
    check_failure([&] { convert(folder_of("gpt1"), to); }, errc::unsupported,
                  {"'architectures'", "GPT-1 is not written: llama.cpp has no architecture for it"});
    CHECK_FALSE(exists(to));
}

TEST_CASE("layers that differ in heads or width have a value each")
{
    auto const files = open_model(folder_of("llama"));
    auto model = describe(files);
    model.spec.layers.at(1).attention.kv_heads = 1;
    model.spec.layers.at(1).ffn.hidden = 48;
    auto const plan = plan_gguf(files, model);
    temporary_folder const folder;
    gguf_writer(folder.path() / "keys.gguf", plan.keys, {}).finish();
    auto const keys = gguf_file::open(folder.path() / "keys.gguf");
    CHECK(keys.u32("llama.attention.head_count") == 4);
    CHECK(keys.i32s("llama.attention.head_count_kv") == std::vector<std::int32_t>{2, 1});
    CHECK(keys.i32s("llama.feed_forward_length") == std::vector<std::int32_t>{64, 48});
    auto const dims_of = [&](std::string_view name) {
        return std::ranges::find(plan.tensors, name, &planned_tensor::name)->dims;
    };
    CHECK(dims_of("blk.0.attn_k.weight") == std::vector<std::int64_t>{32, 16});
    CHECK(dims_of("blk.1.attn_k.weight") == std::vector<std::int64_t>{32, 8});
    CHECK(dims_of("blk.1.ffn_down.weight") == std::vector<std::int64_t>{48, 32});
}

TEST_CASE("experts' matrices take the type asked for, and their biases and their router stay")
{
    temporary_folder const folder;
    auto const to = folder.path() / "to.gguf";
    for (auto const& from : {folder_of("gpt_oss_mxfp4"), folder_of("gpt_oss_mxfp4") / "model.gguf"}) {
        CAPTURE(from.string());
        convert(from, to, {.type = ggml_type::q8_0, .name = {}});
        auto const file = gguf_file::open(to);
        CHECK(file.u32("general.file_type") == 7);
        CHECK(file.tensor("blk.0.ffn_up_exps.weight").type == ggml_type::q8_0);
        for (auto const* vector : {"blk.0.ffn_up_exps.bias", "blk.0.ffn_down_exps.bias", "blk.0.ffn_gate_inp.weight",
                                   "blk.0.attn_sinks.weight"})
            CHECK(file.tensor(vector).type == ggml_type::f32);
    }
    // As it was, experts in MXFP4 pass through.
    convert(folder_of("gpt_oss_mxfp4"), to);
    CHECK(gguf_file::open(to).tensor("blk.0.ffn_up_exps.weight").type == ggml_type::mxfp4);
    convert(folder_of("cohere_qk_norm") / "model.gguf", to, {.type = ggml_type::f16, .name = {}});
    CHECK(gguf_file::open(to).tensor("blk.0.attn_q_norm.weight").type == ggml_type::f32);
}

TEST_CASE("a model in several files becomes one")
{
    temporary_folder const folder;
    auto model = test::tiny_model();
    auto const whole = folder.write("whole.gguf", model.bytes());
    std::size_t const half = model.tensors.size() / 2;
    for (std::int32_t i = 0; i < 2; ++i) {
        test::gguf_writer part;
        if (i == 0) part.entries = model.entries;
        part.set("split.no", i);
        part.set("split.count", std::int32_t{2});
        part.set("split.tensors.count", static_cast<std::int32_t>(model.tensors.size()));
        auto const middle = model.tensors.begin() + static_cast<std::ptrdiff_t>(half);
        part.tensors = i == 0 ? std::vector(model.tensors.begin(), middle) : std::vector(middle, model.tensors.end());
        folder.write("part-0000" + std::to_string(i + 1) + "-of-00002.gguf", part.bytes());
    }
    convert(folder.path() / "part-00001-of-00002.gguf", folder.path() / "joined.gguf");
    auto const joined = gguf_file::open(folder.path() / "joined.gguf");
    auto const original = gguf_file::open(whole);
    CHECK_FALSE(joined.has("split.count"));
    REQUIRE(joined.tensors().size() == original.tensors().size());
    for (stored_tensor const& tensor : original.tensors())
        CHECK(same_bytes(joined, original, tensor.name));
}

TEST_CASE("what can't be converted is refused by name, and leaves no file")
{
    temporary_folder const folder;
    auto const from = folder.path() / "from.gguf";
    auto const to = folder.path() / "to.gguf";
    test::write_tiny_model(from);
    auto const refused = [&](std::filesystem::path const& in, std::filesystem::path const& out,
                             std::optional<ggml_type> type, errc code, std::initializer_list<char const*> parts) {
        check_failure([&] { convert(in, out, {.type = type, .name = {}}); }, code, parts);
        CHECK_FALSE(exists(to));
        CHECK_FALSE(exists(folder.path() / "to.gguf.partial"));
    };
    refused(from, to, ggml_type::q6_k, errc::unsupported, {"type: Q6_K is not written"});
    refused(from, from, {}, errc::invalid_argument, {"from.gguf: is the model itself"});
    refused(from, folder.path(), {}, errc::invalid_argument, {"is a folder"});
    refused(folder.path() / "none.gguf", to, {}, errc::not_found, {"none.gguf"});
    auto odd = test::tiny_model();
    auto& norm = odd.at("output_norm.weight");
    norm.dims = {8, 8};
    folder.write("from.gguf", odd.bytes());
    refused(from, to, {}, errc::bad_file, {"'output_norm.weight'"});
}

TEST_CASE("rows in halves become rows in pairs, a part of a head at most, and all of them")
{
    planned_tensor::part part;
    part.rows = 12;
    CHECK(part.source(5) == 5);
    part.head = 6;
    part.turned = 4;
    std::vector<std::int64_t> rows;
    for (std::int64_t r = 0; r < 12; ++r)
        rows.push_back(part.source(r));
    CHECK(rows == std::vector<std::int64_t>{0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11});
}
