#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/streams/share.hpp>

namespace plait::host {

enum class norm_kind : std::uint8_t {
    none,  ///< N(x) = x
    rms,   ///< Zhang and Sennrich, arXiv:1910.07467
    layer, ///< Ba, Kiros and Hinton, arXiv:1607.06450; the variance is the biased one
};

/// out[i] = residual_scale * residual[i] + scale * N(x[r]), with r = row_index ? row_index[i] : i.
///
/// Each operation is rounded to F32; what is null takes no part. Order of summation: column c is added to lane c % 16,
/// columns ascending; then `sum_lanes`.
/// - rms: with the squares summed by fma, (x * (1 / sqrt(sum / cols + eps))) * weight + bias.
/// - layer, in two passes: mean = sum / cols; d = x - mean; with the squares of d summed by fma,
///   (d * (1 / sqrt(sum / cols + eps))) * weight + bias.
struct norm_args {
    norm_kind kind = norm_kind::rms;
    float const* x = nullptr;
    std::int64_t x_stride = 0; ///< floats from one row of x to the next
    std::int32_t const* row_index = nullptr;
    float const* weight = nullptr; ///< `out.cols` values, or null
    float const* bias = nullptr;   ///< `out.cols` values, or null
    float eps = 0;
    /// rows x cols; F32, quantised (cols a multiple of 32), or both; a slice of wider rows if it has a stride.
    /// `out.f32` may be x itself if `row_index` is null.
    activation_view out;
    float const* residual = nullptr; ///< null, or laid out like out.f32, which it may be
    float residual_scale = 1;
    float scale = 1;
};

namespace scalar {
void norm(norm_args const& args, share part);
}
namespace avx2 {
void norm(norm_args const& args, share part);
}
namespace avx512 {
void norm(norm_args const& args, share part);
}

} // namespace plait::host
