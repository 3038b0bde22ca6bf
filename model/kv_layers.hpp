#pragma once

#include <plait/kv/kv_geometry.hpp>
#include <plait/model/model_spec.hpp>

namespace plait {

/// What the KV cache of a model is made of.
kv_geometry kv_geometry_of(model_spec const& spec, kv_type type);

} // namespace plait
