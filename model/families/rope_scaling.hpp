#pragma once

#include <plait/model/model_spec.hpp>

#include <cstdint>
#include <vector>

namespace plait {

/// How a file says that LLaMA 3.1 and later stretch their rotation.
struct llama3_scaling {
    double factor = 8;
    double low_frequency_factor = 1;
    double high_frequency_factor = 4;
    std::int64_t original_context = 8192;
};

/// The divisors of each frequency: slow turns are slowed down by `factor`, fast ones kept, those between interpolated.
/// Source: the reference implementation of Llama 3.1 (meta-llama/llama-models, models/llama3/model.py).
std::vector<float> llama3_factors(std::int64_t dims, double base, llama3_scaling const& how);

/// How a file says that a model was extended by YaRN.
struct yarn_scaling {
    double factor = 1;
    std::int64_t original_context = 0;
    double beta_fast = 32;
    double beta_slow = 1;
    bool truncate = true; ///< the bounds of the interpolated range are whole numbers
};

/// The divisors of each frequency (Peng et al., arXiv:2309.00071, section 3.2).
std::vector<float> yarn_factors(std::int64_t dims, double base, yarn_scaling const& how);

/// What YaRN multiplies cosines and sines by: 0.1 * m * ln(factor) + 1, or 1 where factor is at most 1.
double yarn_magnitude(double factor, double m = 1);

/// What LongRoPE multiplies them by where the file does not say: sqrt(1 + ln(factor) / ln(original_context)), or 1
/// (Ding et al., arXiv:2402.13753; Phi-3's configuration).
double longrope_magnitude(double factor, std::int64_t original_context);

} // namespace plait
