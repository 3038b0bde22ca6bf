#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/model_files.hpp>

namespace plait {

/// From now on the tensors of `files` that are float matrices of `model` look as if they were stored as `to`, Q8_0 or
/// Q4_1; the token embedding and the output, which suffer most, as Q8_0 in either case. Routers, embeddings of
/// positions and matrices that are stored the other way round stay. Changes `model`'s fingerprint. Errors:
/// errc::invalid_argument for another format.
void quantise(model_files& files, described_model& model, weight_format to);

} // namespace plait
