#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/streams/share.hpp>

#include <span>

namespace plait::host {

/// out[i] = scale * (row tokens[i] - first_token of the embedding matrix) + (a row of the learned positions, if there
/// are any), each operation rounded to F32.
/// An id outside the matrix gives a row of zeros, without a position: ids may come from a sampler that met NaN, and a
/// rank may hold only part of the vocabulary.
struct embed_args {
    weight_view weights;                  ///< vocabulary x cols
    std::int32_t const* tokens = nullptr; ///< `rows` ids, read when the operation runs
    std::int64_t rows = 0;
    std::int32_t first_token = 0;
    float scale = 1;      ///< Gemma multiplies by sqrt(cols)
    float* out = nullptr; ///< rows x cols

    weight_view positions; ///< f32, f16 or bf16, one row a position, as wide as `weights`; null panels: none
    /// Of each row, or null: the row's position in its sequence, from `chunks`, one of which has it.
    std::int32_t const* position_ids = nullptr;
    std::span<sequence_chunk const> chunks;
    std::int32_t first_position = 0; ///< the row of `positions` for position 0 (OPT: 2)
};

void embed(embed_args const& args, share part);

} // namespace plait::host
