#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <plait/kernels/paged_kv.hpp>

namespace plait {

/// Layers whose keys and values share page tables, because they look equally far back.
struct kv_group {
    std::vector<int> layers; ///< indices of layers, ascending
    int kv_heads = 0;
    int head_dim = 0;
    std::int64_t window = 0; ///< positions a layer looks back, 0 = all

    /// Bytes of one page of 16 tokens in every layer of the group.
    std::int64_t page_bytes(kv_type type) const;
};

/// What one layer keeps of a token.
struct kv_layer {
    int kv_heads = 0;
    int head_dim = 0;
    std::int64_t window = 0;
};

/// The shape of a model's KV memory: which layers share a page table, and in what type values are stored.
struct kv_geometry {
    kv_type type = kv_type::f16;
    std::vector<kv_group> groups;

    /// Groups layers that have the same heads and the same window.
    static kv_geometry of(std::vector<kv_layer> const& layers, kv_type type);

    /// Bytes that one token takes in every layer; of the 8-bit type, the scales included.
    std::int64_t bytes_per_token() const;
};

} // namespace plait
