#pragma once

#include <cstdint>
#include <vector>

#include <plait/kernels/paged_kv.hpp>
#include <plait/kv/kv_geometry.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

/// The KV pages of one device: for each group one buffer, layer after layer, `pages` pages each.
class kv_storage {
public:
    /// Allocates `pages` pages for every group on `where`. Throws error(errc::out_of_memory).
    kv_storage(device& where, kv_geometry geometry, std::int64_t pages);

    /// Layer `layer`'s pages, for the operations that read and write them.
    paged_kv layer(int layer) const noexcept { return layers_[static_cast<std::size_t>(layer)]; }

    /// The group of a layer: its index in a sequence's page tables.
    int group_of(int layer) const noexcept { return group_of_[static_cast<std::size_t>(layer)]; }

    kv_geometry const& geometry() const noexcept { return geometry_; }

    /// `t`'s operation is the newest that uses the pages.
    void used_by(ticket t);

private:
    kv_geometry geometry_;
    std::vector<buffer> memory_; // one a group
    std::vector<paged_kv> layers_;
    std::vector<int> group_of_;
};

} // namespace plait
