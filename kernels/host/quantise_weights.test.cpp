#include <plait/kernels/host/quantise_weights.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/host_kernels.hpp>
#include <plait/tests/support/paths.hpp>

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::host;

namespace {

std::vector<std::uint8_t> quantised(weight_format format, std::vector<float> const& x)
{
    auto cols = std::ssize(x);
    std::vector<std::uint8_t> out(file_row_bytes(format, cols));
    quantise_weights(format, cols, x.data(), reinterpret_cast<std::byte*>(out.data()));
    return out;
}

std::vector<float> there_and_back(weight_format format, std::vector<float> const& x)
{
    auto file = quantised(format, x);
    test::buffer<std::byte> panel(packed_bytes(format, 1, std::ssize(x)));
    pack_rows(format, format, 1, std::ssize(x), reinterpret_cast<std::byte const*>(file.data()), panel.data(), 0);
    std::vector<float> out(x.size());
    unpack_row({format, 1, std::ssize(x), panel.data()}, 0, out.data());
    return out;
}

} // namespace

TEST_CASE("weights are quantised to the bytes of the gguf package")
{
    test::golden_file const golden(test::test_data("weights/blocks.golden"));
    auto rows = golden.values<float>("rows");
    for (auto format : {weight_format::q8_0, weight_format::q4_1}) {
        auto expected = golden.values<std::uint8_t>("rows/" + std::string(name(format)));
        CHECK_MESSAGE(quantised(format, rows) == expected, name(format));
    }
}

TEST_CASE("a weight is off by half a step at most, and by what rounding the scale to F16 adds")
{
    auto floats = test::random_floats(32 * 300, 3, 0.05f);
    std::vector<float> const x(floats.begin(), floats.end());
    for (auto format : {weight_format::q8_0, weight_format::q4_1}) {
        auto back = there_and_back(format, x);
        // Of q8_0 d alone is rounded; of q4_1 the minimum too, and d is taken up to twice the greatest magnitude.
        auto rounding = format == weight_format::q8_0 ? 0x1.01p-11 : 0x3.01p-11;
        double worst = 0;
        for (std::size_t b = 0; b < x.size(); b += 32) {
            float least = x[b], most = x[b], magnitude = 0;
            for (std::size_t i = b; i < b + 32; ++i) {
                least = std::min(least, x[i]);
                most = std::max(most, x[i]);
                magnitude = std::max(magnitude, std::fabs(x[i]));
            }
            auto step = format == weight_format::q8_0 ? magnitude / 127 : (most - least) / 15;
            for (std::size_t i = b; i < b + 32; ++i)
                worst = std::max(worst, (std::fabs(static_cast<double>(x[i] - back[i])) - magnitude * rounding) /
                                            static_cast<double>(step));
        }
        CHECK(worst <= 0.5);
        CHECK(worst > 0.3); // values do not lie on the steps
    }
}

TEST_CASE("blocks of tiny weights become zeros, and those with no number NaN")
{
    auto const infinity = std::numeric_limits<float>::infinity();
    std::vector<float> x(32 * 5);
    x[3] = 1e-40f;
    x[32 + 1] = std::numeric_limits<float>::quiet_NaN();
    x[64 + 30] = -infinity;
    x[96 + 2] = infinity;
    x[128] = 1;
    for (auto format : {weight_format::q8_0, weight_format::q4_1}) {
        auto back = there_and_back(format, x);
        for (std::size_t i = 0; i < 32; ++i) {
            CHECK(back[i] == 0.0f);
            for (std::size_t b = 1; b < 4; ++b)
                CHECK(std::isnan(back[b * 32 + i]));
            CHECK(back[128 + i] == doctest::Approx(x[128 + i]).epsilon(1e-3));
        }
    }
    // The difference overflows.
    x.assign(32, std::numeric_limits<float>::max());
    x[7] = -x[7];
    CHECK(quantised(weight_format::q4_1, x)[4] == 0);
    CHECK(quantised(weight_format::q8_0, x)[2] == 127);
}

TEST_CASE("a row that can't be quantised is refused with its reason")
{
    float x[32] = {};
    std::byte out[34];
    CHECK_THROWS_WITH_AS(quantise_weights(weight_format::q6_k, 256, x, out), doctest::Contains("quantised to q6_k"),
                         error);
    CHECK_THROWS_WITH_AS(quantise_weights(weight_format::q8_0, 31, x, out), doctest::Contains("31 columns"), error);
}
