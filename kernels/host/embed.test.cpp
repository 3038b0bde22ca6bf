#include <plait/kernels/host/attention_ops.hpp>
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
