#pragma once

#include <plait/kv/kv_geometry.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/shard.hpp>

namespace plait {

/// What the KV cache of a model is made of.
kv_geometry kv_geometry_of(model_spec const& spec, kv_type type);

/// What a rank's is made of: the groups of the whole model, so that its page tables serve every rank, with the layers
/// and the heads of this one. A group may have no layer here.
kv_geometry kv_geometry_of(model_spec const& whole, kv_type type, shard const& part);

} // namespace plait
