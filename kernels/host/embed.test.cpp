#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

TEST_CASE("an embedding is the scaled row of each token, and zero for an id outside the vocabulary")
{
    constexpr std::int64_t vocabulary = 37;
    constexpr std::int64_t cols = 64;
    auto matrix = random_floats(vocabulary * cols, 3);
    buffer<std::byte> panels(packed_bytes(weight_format::f32, vocabulary, cols));
    pack_rows(weight_format::f32, weight_format::f32, vocabulary, cols,
              reinterpret_cast<std::byte const*>(matrix.data()), panels.data(), 0);
    std::int32_t const tokens[] = {0, 36, 17, 17, -1, 37, 5};
    for (auto set : available_isas())
        for (float scale : {1.0f, 2.5f})
            for (unsigned workers : {1u, 3u, 9u}) {
                buffer<float> out(7 * cols, -7.0f);
                embed_args args;
                args.weights = {weight_format::f32, vocabulary, cols, panels.data()};
                args.tokens = tokens;
                args.rows = 7;
                args.scale = scale;
                args.out = out.data();
                run_all(attention_ops(set).embed, args, workers);
                for (std::size_t i = 0; i < 7; ++i)
                    for (std::size_t c = 0; c < cols; ++c) {
                        bool inside = tokens[i] >= 0 && tokens[i] < vocabulary;
                        float expected = inside ? matrix[static_cast<std::size_t>(tokens[i]) * cols + c] * scale : 0.0f;
                        REQUIRE(out[i * cols + c] == expected);
                    }
            }
}

TEST_CASE("of a part of the vocabulary an embedding gives its own tokens and zeros for the others")
{
    constexpr std::int64_t vocabulary = 40, cols = 32;
    auto matrix = random_floats(vocabulary * cols, 4);
    std::int32_t const tokens[] = {0, 9, 10, 19, 20, 39};
    std::vector<float> sum(6 * cols);
    for (std::int32_t first = 0; first < vocabulary; first += 10) {
        buffer<std::byte> panels(packed_bytes(weight_format::f32, 10, cols));
        pack_rows(weight_format::f32, weight_format::f32, 10, cols,
                  reinterpret_cast<std::byte const*>(matrix.data() + first * cols), panels.data(), 0);
        buffer<float> out(6 * cols, -7.0f);
        embed_args args;
        args.weights = {weight_format::f32, 10, cols, panels.data()};
        args.tokens = tokens;
        args.rows = 6;
        args.first_token = first;
        args.out = out.data();
        run_all(attention_ops(isa::scalar).embed, args);
        for (std::size_t i = 0; i < sum.size(); ++i)
            sum[i] += out[i];
    }
    for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t c = 0; c < cols; ++c)
            CHECK(sum[i * cols + c] == matrix[static_cast<std::size_t>(tokens[i]) * cols + c]);
}

TEST_CASE("a learned position is added to a scaled token, once over all parts of the vocabulary")
{
    constexpr std::int64_t vocabulary = 40, cols = 32, most = 30, rows = 9;
    auto matrix = random_floats(vocabulary * cols, 4), learned = random_floats(most * cols, 5);
    std::int32_t const tokens[rows] = {0, 9, 10, 19, 20, 39, 1, 41, 3};
    std::int32_t const positions[rows] = {7, 8, 9, 10, 0, 1, 2, 21, 22};
    sequence_chunk const chunks[] = {{4, 3, 0}, {0, 4, 7}, {7, 2, 21}}; // in no order
    for (auto format : {weight_format::f32, weight_format::f16, weight_format::bf16}) {
        auto const element = format == weight_format::f32 ? 4u : 2u;
        std::vector<std::byte> file(learned.size() * element);
        std::vector<float> exact(learned.size());
        for (std::size_t i = 0; i < learned.size(); ++i) {
            auto const half = format == weight_format::f16 ? f32_to_f16(learned[i]) : f32_to_bf16(learned[i]);
            exact[i] = format == weight_format::f32   ? learned[i]
                       : format == weight_format::f16 ? f16_to_f32(half)
                                                      : bf16_to_f32(half);
            if (format == weight_format::f32)
                std::memcpy(file.data() + 4 * i, &learned[i], 4);
            else
                std::memcpy(file.data() + 2 * i, &half, 2);
        }
        buffer<std::byte> rows_of_positions(packed_bytes(format, most, cols));
        pack_rows(format, format, most, cols, file.data(), rows_of_positions.data(), 0);
        for (std::int32_t part : {40, 10})
            for (bool by_id : {false, true})
                for (unsigned workers : {1u, 4u}) {
                    std::vector<float> sum(rows * cols);
                    for (std::int32_t first = 0; first < vocabulary; first += part) {
                        buffer<std::byte> panels(packed_bytes(weight_format::f32, part, cols));
                        pack_rows(weight_format::f32, weight_format::f32, part, cols,
                                  reinterpret_cast<std::byte const*>(matrix.data() + first * cols), panels.data(), 0);
                        buffer<float> out(rows * cols, -7.0f);
                        embed_args args;
                        args.weights = {weight_format::f32, part, cols, panels.data()};
                        args.tokens = tokens;
                        args.rows = rows;
                        args.first_token = first;
                        args.scale = 3;
                        args.out = out.data();
                        args.positions = {format, most, cols, rows_of_positions.data()};
                        args.first_position = 2;
                        if (by_id)
                            args.position_ids = positions;
                        else
                            args.chunks = chunks;
                        run_all(attention_ops(isa::scalar).embed, args, workers);
                        for (std::size_t i = 0; i < sum.size(); ++i)
                            sum[i] += out[i];
                    }
                    int wrong = 0;
                    for (std::size_t i = 0; i < rows; ++i)
                        for (std::size_t c = 0; c < cols; ++c) {
                            auto const token = static_cast<std::size_t>(tokens[i]);
                            auto const at = static_cast<std::size_t>(positions[i] + 2) * cols + c;
                            auto const expected = token < vocabulary ? 3 * matrix[token * cols + c] + exact[at] : 0.0f;
                            wrong += sum[i * cols + c] != expected;
                        }
                    CHECK(wrong == 0);
                }
    }
}
