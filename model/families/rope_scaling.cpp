#include <plait/model/families/rope_scaling.hpp>

#include <plait/kernels/host/rope.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plait {

std::vector<float> llama3_factors(std::int64_t dims, double base, llama3_scaling const& how)
{
    auto const context = static_cast<double>(how.original_context);
    auto const slow = context / how.low_frequency_factor;
    auto const fast = context / how.high_frequency_factor;
    std::vector<float> out;
    for (double const frequency : host::rope_frequencies(dims, base)) {
        double const wavelength = 2 * std::numbers::pi / frequency;
        double divisor = 1;
        if (wavelength > slow) {
            divisor = how.factor;
        } else if (wavelength > fast) {
            double const smooth = (context / wavelength - how.low_frequency_factor) /
                                  (how.high_frequency_factor - how.low_frequency_factor);
            divisor = 1 / ((1 - smooth) / how.factor + smooth);
        }
        out.push_back(static_cast<float>(divisor));
    }
    return out;
}

std::vector<float> yarn_factors(std::int64_t dims, double base, yarn_scaling const& how)
{
    // The pair that turns `rotations` times over the original context.
    auto pair_of = [&](double rotations) {
        return static_cast<double>(dims) *
               std::log(static_cast<double>(how.original_context) / (rotations * 2 * std::numbers::pi)) /
               (2 * std::log(base));
    };
    double low = pair_of(how.beta_fast), high = pair_of(how.beta_slow);
    if (how.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(dims - 1));
    if (low == high) high += 0.001; // no division by zero
    std::vector<float> out;
    for (std::int64_t i = 0; i < dims / 2; ++i) {
        double const ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        out.push_back(static_cast<float>(1 / (ramp / how.factor + (1 - ramp))));
    }
    return out;
}

double yarn_magnitude(double factor, double m)
{
    return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1;
}

double longrope_magnitude(double factor, std::int64_t original_context)
{
    return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_context)));
}

} // namespace plait
