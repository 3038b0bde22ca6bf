// The header of a real model file against the facts that the gguf package reads from it.
#include <plait/model/families/family.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

using namespace plait;

TEST_CASE("a real model file is described as the gguf package describes it")
{
    auto const path = test::model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!path) {
        MESSAGE("skipped: not found: smollm2-135m-instruct-q4_1.gguf");
        return;
    }
    gguf_file const file = gguf_file::open(*path);
    CHECK(file.version() == 3);
    CHECK(file.metadata().size() == 33);
    CHECK(file.tensors().size() == 272);
    CHECK(file.strings("tokenizer.ggml.tokens").size() == 49152);
    CHECK(file.strings("tokenizer.ggml.tokens")[1] == "<|im_start|>");
    CHECK(file.strings("tokenizer.ggml.merges").size() == 48900);
    CHECK(file.i32s("tokenizer.ggml.token_type")[0] == 3);

    std::map<ggml_type, std::uint64_t> bytes;
    std::map<ggml_type, int> count;
    std::uint64_t end = 0;
    for (stored_tensor const& tensor : file.tensors()) {
        bytes[tensor.type] += tensor.bytes;
        ++count[tensor.type];
        end = std::max(end, tensor.offset + tensor.bytes);
    }
    CHECK(count == std::map<ggml_type, int>{{ggml_type::f32, 61}, {ggml_type::q4_1, 210}, {ggml_type::q8_0, 1}});
    CHECK(bytes[ggml_type::q8_0] == 30081024);
    CHECK(bytes[ggml_type::q4_1] == 66355200);
    CHECK(end == file.size());
    CHECK(file.tensor("token_embd.weight").offset == 1785664);
    CHECK(file.tensor("blk.0.ffn_down.weight").offset == 31868992);

    model_spec const spec = describe(file).spec;
    CHECK(spec.width == 576);
    CHECK(spec.vocabulary == 49152);
    CHECK(spec.context == 8192);
    CHECK(spec.tied_output);
    REQUIRE(spec.layers.size() == 30);
    CHECK(std::vector<layer_spec>(30, spec.layers[0]) == spec.layers);
    CHECK(spec.layers[0].placement == norm_placement::pre);
    CHECK(spec.layers[0].norm == norm_spec{norm_kind::rms, 1e-5f});
    CHECK(spec.layers[0].attention.heads == 9);
    CHECK(spec.layers[0].attention.kv_heads == 3);
    CHECK(spec.layers[0].attention.head_dim == 64);
    CHECK(spec.layers[0].attention.rope ==
          rope_spec{.style = rope_style::pairs, .dims = 64, .base = 100000, .linear_scale = 1, .factors = {}});
    CHECK(spec.layers[0].ffn == ffn_spec{.hidden = 1536, .activation = activation_kind::silu, .gated = true});
}
