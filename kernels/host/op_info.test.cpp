#include <plait/kernels/host/op_info.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::host;

TEST_CASE("a product moves its packed weights, its input in the form that it takes, and its outputs")
{
    float values[1];
    product_args args;
    args.w = {weight_format::q4_1, 576, 1536, nullptr};
    args.x.rows = 7;
    args.x.cols = 1536;
    args.out = values;
    auto found = info_of(args);
    CHECK(found.name == std::string("product"));
    // 36 panels of 48 blocks; a byte a value, a scale and a sum a block; F32
    CHECK(found.bytes == 36 * 48 * 320 + 7 * (1536 + 48 * 8) + 7 * 576 * 4);
    CHECK(found.flops == 2 * 7 * 576 * 1536);

    args.residual = values;
    CHECK(info_of(args).bytes == found.bytes + 7 * 576 * 4);
    CHECK(info_of(args).flops == found.flops + 7 * 576);

    args.residual = nullptr;
    args.bias = values;
    CHECK(info_of(args).bytes == found.bytes + 576 * 4);
    CHECK(info_of(args).flops == found.flops + 7 * 576);

    args.bias = nullptr;
    args.w.format = weight_format::bf16;
    CHECK(info_of(args).bytes == 576 * 1536 * 2 + 7 * 1536 * 4 + 7 * 576 * 4);
}

TEST_CASE(
    "attention reads the keys and values that somebody sees, each once a chunk, and computes with each that is seen")
{
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        std::vector<sequence_chunk> chunks(1 + random() % 3);
        attention_args args;
        args.heads = 9;
        args.kv.kv_heads = 3;
        args.kv.head_dim = 64;
        args.kv.type = std::array{kv_type::f32, kv_type::f16, kv_type::q8}[random() % 3];
        args.window = random() % 2 == 0 ? 0 : static_cast<std::int32_t>(1 + random() % 40);
        std::int64_t rows = 0, read = 0, seen = 0;
        for (auto& c : chunks) {
            c.rows = static_cast<std::int32_t>(random() % 50);
            c.first_position = static_cast<std::int32_t>(random() % 100);
            rows += c.rows;
            c.prefix = static_cast<std::int32_t>(random() % 2 == 0 ? 0 : random() % (c.first_position + c.rows + 1));
            std::int64_t first = c.first_position, last = 0;
            for (std::int64_t p = c.first_position; p < c.first_position + c.rows; ++p) {
                auto const from = args.window == 0 ? 0 : std::max<std::int64_t>(0, p - args.window + 1);
                first = std::min(first, from);
                auto const end = std::max<std::int64_t>(p + 1, c.prefix);
                last = std::max(last, end);
                seen += end - from;
            }
            if (c.rows > 0) read += last - first;
        }
        args.chunks = chunks;
        auto const stored = args.kv.type == kv_type::f32 ? 256 : args.kv.type == kv_type::f16 ? 128 : 64 + 4;
        auto const found = info_of(args);
        CHECK(found.bytes == rows * 9 * 64 * 4 + read * 3 * 2 * stored);
        CHECK(found.flops == seen * 4 * 9 * 64);
    }
}

TEST_CASE("what an operation writes counts once for each form that it is written in")
{
    float f = 0;
    std::int8_t q = 0;
    norm_args args;
    args.weight = &f;
    args.out.rows = 5;
    args.out.cols = 64;
    args.out.f32 = &f;
    auto const plain = info_of(args).bytes;
    CHECK(plain == (5 * 64 + 64 + 5 * 64) * 4);
    args.out.q8 = &q;
    CHECK(info_of(args).bytes == plain + 5 * (64 + 2 * 8));
    args.out.f32 = nullptr;
    CHECK(info_of(args).bytes == plain + 5 * (64 + 2 * 8) - 5 * 64 * 4);
}

TEST_CASE("a copy of pages reads and writes every layer, whatever its type")
{
    std::array<paged_kv, 2> layers{{{kv_type::f16, 2, 64}, {kv_type::q8, 1, 64}}};
    std::array<page_copy, 3> copies{};
    auto const found = info_of(copy_page_args{layers, copies});
    CHECK(found.bytes == 2 * 3 * (2 * 16 * 64 * 2 * 2 + 16 * (64 * 2 + 8)));
}

TEST_CASE("a layer without a gate counts as half of one with a gate, and biases count where they are")
{
    float f = 0;
    gated_args gated;
    gated.gate_up = {weight_format::f32, 2 * 96, 64, nullptr};
    gated.x.rows = gated.out.rows = 5;
    gated.x.cols = 64;
    gated.out.cols = 96;
    gated.out.f32 = &f;
    activated_args plain;
    plain.w = {weight_format::f32, 96, 64, nullptr};
    plain.x = gated.x;
    plain.out = gated.out;
    auto const moved = (5 * 64 + 5 * 96) * 4;
    CHECK(info_of(gated).bytes == 2 * 96 * 64 * 4 + moved);
    CHECK(info_of(plain).bytes == 96 * 64 * 4 + moved);
    CHECK(info_of(plain).flops == 5 * 96 * (2 * 64 + 3));
    gated.gate_bias = gated.up_bias = plain.bias = &f;
    CHECK(info_of(gated).bytes == (2 * 96 * 64 + 2 * 96) * 4 + moved);
    CHECK(info_of(plain).bytes == (96 * 64 + 96) * 4 + moved);
    CHECK(info_of(plain).flops == 5 * 96 * (2 * 64 + 4));
}

TEST_CASE("of a mixture only as many experts are read as rows can have chosen")
{
    float f = 0;
    expert_gated_args gated;
    gated.choice.used = 4;
    gated.choice.experts = 32;
    gated.gate_up = {weight_format::f32, 2 * 96, 64, nullptr};
    gated.x.cols = 64;
    gated.out.cols = 96;
    gated.out.f32 = &f;
    expert_product_args product;
    product.w = {weight_format::f32, 64, 96, nullptr};
    product.x.cols = 96;
    for (std::int64_t rows : {1, 5, 100}) {
        gated.choice.rows = gated.x.rows = rows;
        gated.out.rows = product.x.rows = 4 * rows;
        product.choice = gated.choice;
        auto const busy = std::min<std::int64_t>(32, 4 * rows);
        CHECK(info_of(gated).bytes == (busy * 2 * 96 * 64 + rows * 64 + 4 * rows * 96) * 4);
        CHECK(info_of(product).bytes == (busy * 96 * 64 + 4 * rows * 96 + 4 * rows * 64) * 4);
        CHECK(info_of(product).flops == 2 * 4 * rows * 96 * 64);
        CHECK(info_of(expert_sum_args{product.choice, nullptr, 64}).bytes == (4 * rows * 64 + rows * 64) * 4);
    }
}
