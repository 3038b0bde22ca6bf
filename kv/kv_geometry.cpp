#include <algorithm>

#include <plait/kv/kv_geometry.hpp>

namespace plait {

std::int64_t kv_group::page_bytes(kv_type type) const
{
    return static_cast<std::int64_t>(layers.size() * plait::page_bytes(type, kv_heads, head_dim));
}

kv_geometry kv_geometry::of(std::vector<kv_layer> const& layers, kv_type type)
{
    kv_geometry out{type, {}};
    for (std::size_t i = 0; i < layers.size(); ++i) {
        auto const& layer = layers[i];
        auto same = std::ranges::find_if(out.groups, [&](kv_group const& g) {
            return g.kv_heads == layer.kv_heads && g.head_dim == layer.head_dim && g.window == layer.window;
        });
        if (same == out.groups.end())
            same = out.groups.insert(same, kv_group{{}, layer.kv_heads, layer.head_dim, layer.window});
        same->layers.push_back(static_cast<int>(i));
    }
    return out;
}

std::int64_t kv_geometry::bytes_per_token() const
{
    std::int64_t bytes = 0;
    for (auto const& group : groups)
        bytes += group.page_bytes(type) / page_tokens;
    return bytes;
}

} // namespace plait
