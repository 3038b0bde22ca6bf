#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

constexpr std::int64_t widths[] = {1, 15, 16, 17, 31, 32, 64, 100, 576, 1000};

struct form {
    norm_kind kind = norm_kind::rms;
    bool weight = true;
    bool bias = false;
    bool residual = false;
    std::int64_t gap = 0; ///< floats between the rows of what is written
};

form const forms[] = {{},
                      {norm_kind::rms, false},
                      {norm_kind::rms, true, true, true, 5},
                      {norm_kind::layer},
                      {norm_kind::layer, false},
                      {norm_kind::layer, true, true},
                      {norm_kind::layer, true, true, true},
                      {norm_kind::layer, true, false, true, 3}};

struct inputs {
    std::int64_t rows;
    std::int64_t cols;
    form how = {};
    buffer<float> x = random_floats(static_cast<std::size_t>(rows * cols), 1, 3);
    buffer<float> weight = random_floats(static_cast<std::size_t>(cols), 2);
    buffer<float> bias = random_floats(static_cast<std::size_t>(cols), 3);
    buffer<float> before = random_floats(static_cast<std::size_t>(rows * (cols + how.gap)), 4); ///< what out holds

    norm_args args() const
    {
        norm_args args;
        args.kind = how.kind;
        args.x = x.data();
        args.x_stride = cols;
        args.weight = how.weight ? weight.data() : nullptr;
        args.bias = how.bias ? bias.data() : nullptr;
        args.eps = 1e-5f;
        args.residual_scale = 0.7f;
        args.scale = how.residual ? 1.3f : 1.0f;
        return args;
    }

    buffer<float> run(isa set, unsigned workers) const
    {
        auto out = before;
        auto args = this->args();
        args.out = {rows, cols, out.data(), nullptr, nullptr, nullptr, cols + how.gap};
        if (how.residual) args.residual = out.data();
        run_all(attention_ops(set).norm, args, workers);
        return out;
    }
};

} // namespace

TEST_CASE("a norm agrees with F64 to a few units in the last place")
{
    for (auto const& how : forms)
        for (auto cols : widths) {
            inputs in{3, cols, how};
            bool const layer = how.kind == norm_kind::layer;
            auto out = in.run(isa::scalar, 1);
            for (std::int64_t r = 0; r < in.rows; ++r) {
                auto x = [&](std::int64_t c) {
                    return static_cast<double>(in.x[static_cast<std::size_t>(r * cols + c)]);
                };
                double mean = 0, squares = 0, largest = 0;
                for (std::int64_t c = 0; layer && c < cols; ++c)
                    mean += x(c) / static_cast<double>(cols);
                for (std::int64_t c = 0; c < cols; ++c) {
                    squares += std::pow(x(c) - mean, 2);
                    largest = std::max(largest, std::fabs(x(c)));
                }
                double factor = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
                for (std::int64_t c = 0; c < cols; ++c) {
                    auto column = static_cast<std::size_t>(c);
                    auto i = static_cast<std::size_t>(r * (cols + how.gap) + c);
                    double weight = how.weight ? in.weight[column] : 1;
                    double value = (x(c) - mean) * factor * weight;
                    // A difference from the mean has the rounding of what it is a difference of.
                    double size = std::fabs(value) + (layer ? largest * factor * std::fabs(weight) : 0);
                    if (how.bias) value += in.bias[column], size += std::fabs(in.bias[column]);
                    if (how.residual) {
                        value = 0.7f * static_cast<double>(in.before[i]) + 1.3f * value;
                        size = std::fabs(in.before[i]) + 1.3 * size;
                    }
                    REQUIRE(std::fabs(out[i] - value) <= 1e-6 * size);
                }
            }
        }
}

TEST_CASE("a norm has the same bits in every instruction set and for any number of workers, and writes no gap")
{
    for (auto const& how : forms)
        for (auto cols : widths) {
            inputs in{5, cols, how};
            auto expected = in.run(isa::scalar, 1);
            for (auto set : available_isas())
                for (unsigned workers : {1u, 2u, 3u, 7u})
                    REQUIRE(same_bits(in.run(set, workers), expected));
            int changed = 0;
            for (std::size_t i = 0; i < expected.size(); ++i)
                if (static_cast<std::int64_t>(i) % (cols + how.gap) >= cols) changed += expected[i] != in.before[i];
            REQUIRE(changed == 0);
        }
}

TEST_CASE("a scale without a residual multiplies what a norm makes")
{
    inputs in{2, 40, {norm_kind::layer, true, true}};
    auto expected = in.run(isa::scalar, 1);
    for (auto& value : expected)
        value = 1.7f * value;
    for (auto set : available_isas()) {
        buffer<float> out(80);
        auto args = in.args();
        args.scale = 1.7f;
        args.out = {2, 40, out.data(), nullptr, nullptr, nullptr};
        run_all(attention_ops(set).norm, args);
        CHECK(same_bits(out, expected));
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
            norm_args args;
            args.x = in.x.data();
            args.x_stride = 96;
            args.row_index = index;
            args.weight = in.weight.data();
            args.eps = 1e-5f;
            args.out = {3, 96, also_f32 ? f32.data() : nullptr, q8.data(), scales.data(), sums.data()};
            run_all(attention_ops(set).norm, args, 2);
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

TEST_CASE("a norm may overwrite its input, also a slice of wider rows")
{
    constexpr std::size_t width = 100, first = 30, cols = 40;
    for (auto kind : {norm_kind::rms, norm_kind::layer}) {
        inputs in{3, cols, {kind}};
        auto expected = in.run(isa::scalar, 1);
        for (auto set : available_isas()) {
            auto x = in.x;
            auto args = in.args();
            args.x = x.data();
            args.out = {3, cols, x.data(), nullptr, nullptr, nullptr};
            run_all(attention_ops(set).norm, args);
            CHECK(same_bits(x, expected));

            buffer<float> wide(3 * width, 9.0f);
            for (std::size_t r = 0; r < 3; ++r)
                std::copy_n(in.x.data() + r * cols, cols, wide.data() + r * width + first);
            args.x = wide.data() + first;
            args.x_stride = width;
            args.out = {3, cols, wide.data() + first, nullptr, nullptr, nullptr, width};
            run_all(attention_ops(set).norm, args, 2);
            CHECK(std::count(wide.begin(), wide.end(), 9.0f) == 3 * (width - cols));
            for (std::size_t r = 0; r < 3; ++r)
                CHECK(std::memcmp(wide.data() + r * width + first, expected.data() + r * cols, cols * 4) == 0);
        }
    }
}
