#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/streams/share.hpp>

namespace plait::host {

/// out[i] = x[r] / sqrt(mean(x[r]^2) + eps) * weight, with r = row_index ? row_index[i] : i.
/// (Zhang and Sennrich, arXiv:1910.07467.)
///
/// Order of summation: column c is added to lane c % 16 with fma, columns ascending; then `sum_lanes`. The result is
/// (x * (1 / sqrt(sum / cols + eps))) * weight, each operation rounded to F32.
struct rms_norm_args {
    float const* x = nullptr;
    std::int64_t x_stride = 0; ///< floats from one row of x to the next
    std::int32_t const* row_index = nullptr;
    float const* weight = nullptr; ///< `out.cols` values
    float eps = 0;
    /// rows x cols; F32, quantised (cols a multiple of 32), or both. `out.f32` may be x itself if `row_index` is null.
    activation_view out;
};

namespace scalar {
void rms_norm(rms_norm_args const& args, share part);
}
namespace avx2 {
void rms_norm(rms_norm_args const& args, share part);
}
namespace avx512 {
void rms_norm(rms_norm_args const& args, share part);
}

} // namespace plait::host
