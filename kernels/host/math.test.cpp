#include <plait/kernels/host/math.hpp>

#include <algorithm>
#include <doctest/doctest.h>

using namespace plait;

namespace {

// Calls `f` with floats all over the line, and both neighbours of a few corners.
template<class F>
void sweep(F f)
{
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 65521)
        f(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    for (float corner : {0.0f, 1.0f, -1.0f, 4.0f, 0.625f, -0.625f, -87.3f, 88.72f, 0.70710678f})
        for (float x :
             {std::nextafter(corner, -host::math::infinity), corner, std::nextafter(corner, host::math::infinity)})
            f(x);
}

double relative(double value, double reference)
{
    return value == reference ? 0 : std::fabs(value - reference) / std::fabs(reference);
}

} // namespace

TEST_CASE("exp is within 2^-22 of the exponential where the result is a normal number")
{
    double worst = 0;
    sweep([&](float x) {
        if (x >= host::math::exp_lowest && x <= host::math::exp_highest)
            worst = std::max(worst, relative(host::exp(x), std::exp(static_cast<double>(x))));
    });
    CHECK(worst < 0x1p-22);
    CHECK(host::exp(0.0f) == 1.0f);
    CHECK(host::exp(-0.0f) == 1.0f);
}

TEST_CASE("exp is exactly 0 far below zero and infinite far above")
{
    CHECK(std::bit_cast<std::uint32_t>(host::exp(-host::math::infinity)) == 0);
    CHECK(std::bit_cast<std::uint32_t>(host::exp(-1e30f)) == 0);
    CHECK(host::exp(-87.31f) == 0.0f);
    CHECK(host::exp(88.8f) == host::math::infinity);
    CHECK(host::exp(host::math::infinity) == host::math::infinity);
}

TEST_CASE("log is within 2^-22 of the logarithm for normal numbers")
{
    double worst = 0;
    sweep([&](float x) {
        if (x >= host::math::smallest_normal && std::isfinite(x))
            worst = std::max(worst, relative(host::log(x), std::log(static_cast<double>(x))));
    });
    CHECK(worst < 0x1p-22);
    CHECK(host::log(1.0f) == 0.0f);
    CHECK(host::log(0.0f) == -host::math::infinity);
    CHECK(host::log(host::math::infinity) == host::math::infinity);
    CHECK(std::isnan(host::log(-1.0f)));
}

TEST_CASE("erf is within 2^-22 of the error function, and exactly 1 beyond 4")
{
    double worst = 0;
    sweep([&](float x) {
        if (std::isfinite(x) && std::fabs(x) > 1e-30f)
            worst = std::max(worst, relative(host::erf(x), std::erf(static_cast<double>(x))));
    });
    CHECK(worst < 0x1p-22);
    CHECK(host::erf(0.0f) == 0.0f);
    CHECK(std::signbit(host::erf(-0.0f)));
    CHECK(host::erf(4.0f) == 1.0f);
    CHECK(host::erf(-host::math::infinity) == -1.0f);
}

TEST_CASE("tanh, silu and gelu follow their formulas")
{
    double tanh_worst = 0;
    double silu_worst = 0;
    double gelu_worst = 0;
    double erf_worst = 0;
    sweep([&](float x) {
        if (!std::isfinite(x) || std::fabs(x) < 1e-30f) return;
        double d = x;
        tanh_worst = std::max(tanh_worst, relative(host::tanh(x), std::tanh(d)));
        if (x > -80 && x < 1e30f) silu_worst = std::max(silu_worst, relative(host::silu(x), d / (1 + std::exp(-d))));
        if (std::fabs(x) < 1e10f) {
            double gelu = 0.5 * d * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (d + 0.044715 * d * d * d)));
            gelu_worst = std::max(gelu_worst, std::fabs(host::gelu_tanh(x) - gelu) / std::max(1.0, std::fabs(d)));
            double exact = 0.5 * d * std::erfc(-d * std::sqrt(0.5));
            erf_worst = std::max(erf_worst, std::fabs(host::gelu_erf(x) - exact) / std::fabs(d));
        }
    });
    CHECK(tanh_worst < 0x1p-22);
    CHECK(silu_worst < 0x1p-22);
    CHECK(gelu_worst < 0x1p-22);
    CHECK(erf_worst < 0x1p-22);
    CHECK(host::tanh(100.0f) == 1.0f);
    CHECK(host::tanh(-100.0f) == -1.0f);
    CHECK(host::silu(-1000.0f) == 0.0f);
    CHECK(host::gelu_tanh(-1000.0f) == 0.0f);
    CHECK(host::gelu_erf(-1000.0f) == 0.0f);
    CHECK(host::gelu_erf(1000.0f) == 1000.0f);
}

TEST_CASE("a function of NaN is NaN")
{
    float const nan = std::numeric_limits<float>::quiet_NaN();
    for (float value : {host::exp(nan), host::log(nan), host::tanh(nan), host::erf(nan), host::silu(nan),
                        host::gelu_tanh(nan), host::gelu_erf(nan)})
        CHECK(std::isnan(value));
}

TEST_CASE("sixteen lanes are added as a tree")
{
    float lanes[16];
    for (int i = 0; i < 16; ++i)
        lanes[i] = i == 0 ? 1e8f : i == 8 ? -1e8f : 1.0f;
    CHECK(host::sum_lanes(lanes) == 14.0f);
}
