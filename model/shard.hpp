#pragma once

#include <plait/model/families/family.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plait {

/// How a model is spread over devices.
struct parallelism {
    std::int32_t tensor = 1;   ///< ranks that share every layer: heads, hidden features and vocabulary are divided
    std::int32_t pipeline = 1; ///< stages, each with a run of layers
    /// Summands of which every product that is divided by its input (attention output, down) is made, in their order: a
    /// multiple of `tensor`. Every `tensor` that divides it gives the same bits. 0: `tensor` itself.
    std::int32_t sum_parts = 0;

    std::int32_t ranks() const noexcept { return tensor * pipeline; }
    std::int32_t summands() const noexcept { return sum_parts == 0 ? tensor : sum_parts; }
    bool operator==(parallelism const&) const = default;
};

/// One rank's part of a model.
struct shard {
    std::int32_t rank = 0; ///< among the `ranks` that share its layers
    std::int32_t ranks = 1;
    std::int32_t stage = 0;
    std::int32_t stages = 1;
    std::int64_t first_layer = 0;
    std::int64_t layers = 0;
    std::int32_t parts = 1; ///< summands that this rank makes of a product that is divided by its input

    /// The same of KV heads, which are on several ranks where there are fewer of them.
    std::int64_t first_kv_head(std::int64_t whole) const noexcept { return whole * rank / ranks; }
    std::int64_t kv_heads(std::int64_t whole) const noexcept { return std::max<std::int64_t>(1, whole / ranks); }
    /// Of `rows` rows whose logits are wanted, how many each rank gets; the last ones may get fewer, or none.
    std::int64_t rows_each(std::int64_t rows) const noexcept { return (rows + ranks - 1) / ranks; }
    /// The first of this rank's, and how many it has.
    std::int64_t first_row(std::int64_t rows) const noexcept { return std::min(rows, rows_each(rows) * rank); }
    std::int64_t rows_of(std::int64_t rows) const noexcept
    {
        return std::min(rows, rows_each(rows) * (rank + 1)) - first_row(rows);
    }
    bool first() const noexcept { return stage == 0; }         ///< has the token embedding
    bool last() const noexcept { return stage + 1 == stages; } ///< has the output
    /// This rank's part of `whole`, which `ranks` divides: where it begins, and how long it is.
    std::int64_t begin(std::int64_t whole) const noexcept { return whole / ranks * rank; }
    std::int64_t length(std::int64_t whole) const noexcept { return whole / ranks; }
};

/// Throws error(errc::invalid_argument) when a model can't be spread so, with every number that forbids it and the
/// degrees that work: heads, hidden features and the vocabulary must be multiples of `tensor`, KV heads a multiple or a
/// divisor of it, the inputs of divided products multiples of the summands, in whole blocks (32 or 256) where the
/// file has their weights quantised; a stage has one layer at least.
void check(parallelism const& how, tensor_source const& file, described_model const& model);

/// The shard of every rank: stage s, rank r of it at s × tensor + r. Stages get runs of layers such that the one with
/// the most weights has as few as can be, the output matrix counted with the last stage. `how` has been checked.
std::vector<shard> divide(parallelism const& how, model_spec const& spec);

/// What a rank computes: its layers, with its heads and hidden features. KV heads that are fewer than the ranks are on
/// several of them. The vocabulary stays whole.
model_spec part_of(model_spec const& spec, shard const& part);

} // namespace plait
