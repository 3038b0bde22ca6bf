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

kv_geometry kv_geometry_of(model_spec const& whole, kv_type type, shard const& part)
{
    auto out = kv_geometry_of(whole, type);
    for (auto& group : out.groups) {
        std::vector<int> mine;
        for (auto layer : group.layers)
            if (layer >= part.first_layer && layer < part.first_layer + part.layers)
                mine.push_back(layer - static_cast<int>(part.first_layer));
        group.layers = std::move(mine);
        group.kv_heads = static_cast<int>(part.kv_heads(group.kv_heads));
    }
    return out;
}

} // namespace plait
