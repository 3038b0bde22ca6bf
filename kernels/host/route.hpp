#pragma once

#include <plait/streams/share.hpp>

/// Which experts of a mixture each token goes to (Shazeer et al., arXiv:1701.06538).
namespace plait::host {

/// What the outputs of a router become.
enum class expert_scoring : std::uint8_t {
    softmax,        ///< scores and weights are a softmax over all experts (Qwen3-MoE)
    softmax_chosen, ///< scores are the outputs themselves, weights a softmax over the chosen (Mixtral, gpt-oss)
    sigmoid,        ///< scores and weights are 1 / (1 + exp(-x)) (DeepSeek-V3, arXiv:2412.19437; GLM-4.5)
};

/// The experts that each row has chosen, in device memory that it does not own. Slots are the `used` experts of a row,
/// their ids ascending: so the order in which they are summed is the experts', and no other row has a part in it.
/// A rank may hold some of the experts only: those from `first_expert` on, `experts` of them. What the others would
/// make is not computed.
struct expert_choice {
    std::int64_t rows = 0;
    std::int32_t used = 0;
    std::int32_t first_expert = 0;
    std::int32_t experts = 0;
    std::int32_t* ids = nullptr;     ///< rows x used
    float* weights = nullptr;        ///< rows x used
    std::int32_t* first = nullptr;   ///< experts + 1: where the entries of each expert that is here begin, and the end
    std::int32_t* entries = nullptr; ///< at most rows x used: row * used + slot, expert after expert, rows ascending

    /// Whether an id, of all experts, is one that is here.
    bool here(std::int32_t id) const noexcept { return id >= first_expert && id - first_expert < experts; }
};

/// Chooses for each row the `used` experts with the greatest score + selection_bias, the lower id of equals. With
/// groups (of experts side by side, all of a size) only those of the `groups_used` groups with the greatest sum of
/// their two best count, again the lower of equals.
///
/// In F32: a softmax of n values is e(c) = exp(x(c) - max), the sum of e(c) in lane c % 16, c ascending, `sum_lanes`,
/// and e(c) / sum. Weights are without the selection bias; renormalised ones are w / (sum + 1e-20), the sum over the
/// slots ascending from 0. Last they are multiplied by `scale`. A row's choice depends on its outputs alone; of outputs
/// that are NaN it is some choice.
struct route_args {
    float const* logits = nullptr; ///< rows x experts
    std::int32_t experts = 0;      ///< all of them, at least as many as are used
    expert_scoring scoring = expert_scoring::softmax_chosen;
    float const* selection_bias = nullptr; ///< `experts` values, or null
    std::int32_t groups = 1;               ///< a divisor of `experts`
    std::int32_t groups_used = 1;          ///< together they have as many experts as are used
    bool renormalise = false;
    float scale = 1;
    expert_choice choice; ///< rows, used and where things go
};

/// What an instruction set provides.
struct route_kernels {
    void (*softmax)(float const* x, std::int64_t count, float* out); ///< `out` may be `x`, as in `sigmoid`
    void (*sigmoid)(float const* x, std::int64_t count, float* out);
};

/// Writes ids and weights. Needs 16 bytes of scratch for each expert.
void route(route_kernels const& kernels, route_args const& args, share part);

/// Writes the entries of a choice; after `route`.
void list_experts(expert_choice const& choice, share part);

namespace scalar {
extern route_kernels const routing;
}
namespace avx2 {
extern route_kernels const routing;
}
namespace avx512 {
extern route_kernels const routing;
}

} // namespace plait::host
