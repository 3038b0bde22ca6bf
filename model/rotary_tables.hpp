#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <plait/kernels/host/rope.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/model_spec.hpp>

namespace plait {

/// The angles of every rotation that a model has, each computed once for all layers that share it (rope_spec). Where
/// long sequences have other frequencies, the rows of those stand behind the others
/// (sequence_chunk::rope_table_offset).
class rotary_tables {
public:
    /// Bytes for positions 0 to `positions` - 1, with derivation.
    static memory_line plan(model_spec const& spec, std::int64_t positions);

    rotary_tables(model_spec const& spec, std::int64_t positions);

    /// Empty for a layer without rotation. Valid as long as the tables.
    auto view(std::size_t layer) const { return tables_[of_layer_[layer]].view(); }

private:
    std::vector<host::rope_table> tables_;
    std::vector<std::size_t> of_layer_;
};

} // namespace plait
