#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/streams/share.hpp>

namespace plait::host {

/// out[i] = scale * (row tokens[i] - first_token of the embedding matrix), F32.
/// An id outside the matrix gives a row of zeros: ids may come from a sampler that met NaN, and a rank may hold only
/// part of the vocabulary.
struct embed_args {
    weight_view weights;                  ///< vocabulary x cols
    std::int32_t const* tokens = nullptr; ///< `rows` ids, read when the operation runs
    std::int64_t rows = 0;
    std::int32_t first_token = 0;
    float scale = 1;      ///< Gemma multiplies by sqrt(cols)
    float* out = nullptr; ///< rows x cols
};

void embed(embed_args const& args, share part);

} // namespace plait::host
