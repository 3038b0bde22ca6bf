#include <plait/model/kv_layers.hpp>

namespace plait {

kv_geometry kv_geometry_of(model_spec const& spec, kv_type type)
{
    std::vector<kv_layer> layers;
    layers.reserve(spec.layers.size());
    for (auto const& layer : spec.layers)
        layers.push_back({static_cast<int>(layer.attention.kv_heads), static_cast<int>(layer.attention.head_dim),
                          layer.attention.window});
    return kv_geometry::of(layers, type);
}

} // namespace plait
