#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/streams/share.hpp>

namespace plait::host {

/// out[i] = scale * (row tokens[i] of the embedding matrix), F32.
/// An id outside the matrix gives a row of zeros: ids may come from a sampler that met NaN.
struct embed_args {
    weight_view weights;                  ///< vocabulary x cols
    std::int32_t const* tokens = nullptr; ///< `rows` ids, read when the operation runs
    std::int64_t rows = 0;
    float scale = 1;      ///< Gemma multiplies by sqrt(cols)
    float* out = nullptr; ///< rows x cols
};

void embed(embed_args const& args, share part);

} // namespace plait::host
