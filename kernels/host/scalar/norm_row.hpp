#pragma once

#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/norm.hpp>

/// The norm of a row (norm_args), which is a row of the residual stream or a head.
namespace plait::host::scalar {

struct row_measure {
    norm_kind kind = norm_kind::rms;
    float mean = 0;
    float factor = 0;
};

static inline row_measure measure(norm_kind kind, float const* x, std::int64_t cols, float eps) noexcept
{
    auto const count = static_cast<float>(cols);
    row_measure in{kind};
    if (kind == norm_kind::none) {
        in.factor = 1;
        return in;
    }
    if (kind == norm_kind::layer) {
        float lanes[16] = {};
        for (std::int64_t c = 0; c < cols; ++c)
            lanes[c % 16] = lanes[c % 16] + x[c];
        in.mean = sum_lanes(lanes) / count;
    }
    float lanes[16] = {};
    for (std::int64_t c = 0; c < cols; ++c) {
        float const d = kind == norm_kind::layer ? x[c] - in.mean : x[c];
        lanes[c % 16] = std::fma(d, d, lanes[c % 16]);
    }
    in.factor = 1.0f / std::sqrt(sum_lanes(lanes) / count + eps);
    return in;
}

static inline float normalised(row_measure const& in, float x, float const* weight) noexcept
{
    float const value = (in.kind == norm_kind::layer ? x - in.mean : x) * in.factor;
    return weight ? value * *weight : value;
}

} // namespace plait::host::scalar
