#include <plait/kv/kv_storage.hpp>

namespace plait {

kv_storage::kv_storage(device& where, kv_geometry geometry, std::int64_t pages)
    : geometry_(std::move(geometry))
{
    std::size_t layers = 0;
    for (auto const& group : geometry_.groups)
        layers += group.layers.size();
    layers_.resize(layers);
    group_of_.resize(layers);
    for (std::size_t g = 0; g < geometry_.groups.size(); ++g) {
        auto const& group = geometry_.groups[g];
        auto stride = page_bytes(geometry_.type, group.kv_heads, group.head_dim);
        auto layer_bytes = stride * static_cast<std::size_t>(pages);
        memory_.emplace_back(where, layer_bytes * group.layers.size());
        for (std::size_t i = 0; i < group.layers.size(); ++i) {
            auto layer = static_cast<std::size_t>(group.layers[i]);
            layers_[layer] = {geometry_.type, group.kv_heads, group.head_dim, memory_[g].data() + i * layer_bytes,
                              stride};
            group_of_[layer] = static_cast<int>(g);
        }
    }
}

void kv_storage::used_by(ticket t)
{
    for (auto& memory : memory_)
        memory.used_by(t);
}

} // namespace plait
