#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <plait/kernels/ops.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/shard.hpp>
#include <plait/streams/buffer.hpp>

namespace plait {

/// The largest step that a decoder can be asked for; its activations are sized by it, once.
struct step_limits {
    std::int64_t rows = 512;      ///< tokens of all sequences together
    std::int64_t logit_rows = 64; ///< tokens whose logits are wanted
    std::int64_t positions = 0;   ///< the longest sequence
    std::int64_t lanes = 1;       ///< passes that are woven; each has activations of its own
};

/// What the passes of one lane compute in. Each member is as large as the layer that needs most of it asks for; null or
/// empty where no layer has it.
struct lane_activations {
    activation_view x;          ///< the residual stream; quantised too, for layers that read it without a norm
    activation_view normed;     ///< input of a sublayer
    activation_view normed_too; ///< of the second, where two read the stream at the same time
    activation_view attended;   ///< heads, before the output projection
    activation_view gated;      ///< between the two halves of the feed-forward network
    activation_view last;       ///< final norm of the rows whose logits are wanted
    float* qkv = nullptr;       ///< rows × activations::qkv_width()
    float* summands = nullptr;  ///< of a product that is divided by its input, or whose output is normed
    /// Of a mixture: what the router says, what it chooses, and each slot's expert between its halves and after them.
    float* router = nullptr;
    expert_choice choice;
    activation_view expert_gated;
    float* expert_out = nullptr;
    float* logits = nullptr;
    float* shards = nullptr; ///< this rank's tokens' logits, then everybody's of its rows, to be joined
    ticket newest;           ///< that uses it
};

/// The activations of a decoder's lanes, in one buffer that every step uses again; the device sees to the order.
class activations {
public:
    /// Bytes that the activations take, with derivation. `spec` is the part's.
    static std::vector<memory_line> plan(model_spec const& spec, shard const& part, step_limits const& limits);

    activations(device& where, model_spec const& spec, shard const& part, step_limits const& limits);

    lane_activations& lane(std::size_t index) { return lanes_[index]; }

    /// Numbers between two rows of queries, keys and values.
    std::int64_t qkv_width() const noexcept { return qkv_width_; }

    /// The memory stays until `t` has passed.
    void used_by(ticket const& t) { memory_.used_by(t); }

private:
    buffer memory_;
    std::vector<lane_activations> lanes_;
    std::int64_t qkv_width_ = 0;
};

} // namespace plait
