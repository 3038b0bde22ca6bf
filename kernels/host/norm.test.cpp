#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <cmath>
#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

constexpr std::int64_t widths[] = {1, 15, 16, 17, 31, 32, 64, 100, 576, 1000};

struct inputs {
    std::int64_t rows;
    std::int64_t cols;
    buffer<float> x = random_floats(static_cast<std::size_t>(rows * cols), 1, 3);
    buffer<float> weight = random_floats(static_cast<std::size_t>(cols), 2);

    buffer<float> run(isa set, unsigned workers) const
    {
        buffer<float> out(x.size());
        rms_norm_args args;
        args.x = x.data();
        args.x_stride = cols;
        args.weight = weight.data();
        args.eps = 1e-5f;
        args.out = {rows, cols, out.data(), nullptr, nullptr, nullptr};
        run_all(attention_ops(set).rms_norm, args, workers);
        return out;
    }
};

} // namespace

TEST_CASE("an RMS norm agrees with F64 to a few units in the last place")
{
    for (auto cols : widths) {
        inputs in{3, cols};
        auto out = in.run(isa::scalar, 1);
        for (std::int64_t r = 0; r < in.rows; ++r) {
            double sum = 0;
            for (std::int64_t c = 0; c < cols; ++c)
                sum += std::pow(static_cast<double>(in.x[static_cast<std::size_t>(r * cols + c)]), 2);
            double factor = 1 / std::sqrt(sum / static_cast<double>(cols) + 1e-5);
            for (std::int64_t c = 0; c < cols; ++c) {
                auto i = static_cast<std::size_t>(r * cols + c);
                double expected = in.x[i] * factor * in.weight[static_cast<std::size_t>(c)];
                REQUIRE(std::fabs(out[i] - expected) <= 1e-6 * std::fabs(expected));
            }
        }
    }
}

TEST_CASE("an RMS norm has the same bits in every instruction set and for any number of workers")
{
    for (auto cols : widths) {
        inputs in{5, cols};
        auto expected = in.run(isa::scalar, 1);
        for (auto set : available_isas())
            for (unsigned workers : {1u, 2u, 3u, 7u})
                REQUIRE(same_bits(in.run(set, workers), expected));
    }
}

TEST_CASE("an RMS norm gathers rows and quantises what it writes")
{
    inputs in{6, 96};
    auto whole = in.run(isa::scalar, 1);
    std::int32_t const index[] = {5, 0, 5};
    for (auto set : available_isas())
        for (bool also_f32 : {false, true}) {
            buffer<float> f32(3 * 96);
            buffer<std::int8_t> q8(3 * 96);
            buffer<float> scales(9);
            buffer<float> sums(9);
            rms_norm_args args;
            args.x = in.x.data();
            args.x_stride = 96;
            args.row_index = index;
            args.weight = in.weight.data();
            args.eps = 1e-5f;
            args.out = {3, 96, also_f32 ? f32.data() : nullptr, q8.data(), scales.data(), sums.data()};
            run_all(attention_ops(set).rms_norm, args, 2);
            for (std::size_t r = 0; r < 3; ++r) {
                float const* row = whole.data() + static_cast<std::size_t>(index[r]) * 96;
                std::int8_t expected[96];
                float expected_scales[3];
                float expected_sums[3];
                products(isa::scalar).quantise_row(row, 96, expected, expected_scales, expected_sums);
                if (also_f32) CHECK(std::memcmp(f32.data() + r * 96, row, sizeof(float) * 96) == 0);
                CHECK(std::memcmp(q8.data() + r * 96, expected, 96) == 0);
                CHECK(std::memcmp(scales.data() + r * 3, expected_scales, sizeof expected_scales) == 0);
                CHECK(std::memcmp(sums.data() + r * 3, expected_sums, sizeof expected_sums) == 0);
            }
        }
}

TEST_CASE("an RMS norm may overwrite its input")
{
    inputs in{2, 40};
    auto expected = in.run(isa::scalar, 1);
    for (auto set : available_isas()) {
        auto x = in.x;
        rms_norm_args args;
        args.x = x.data();
        args.x_stride = 40;
        args.weight = in.weight.data();
        args.eps = 1e-5f;
        args.out = {2, 40, x.data(), nullptr, nullptr, nullptr};
        run_all(attention_ops(set).rms_norm, args);
        CHECK(same_bits(x, expected));
    }
}
