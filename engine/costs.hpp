#pragma once

#include <cstdint>

#include <plait/actors/clock.hpp>

namespace plait {

/// What a step computes, as far as its time depends on it.
struct step_shape {
    std::int64_t prefill = 0; ///< tokens of prompts
    std::int64_t decode = 0;  ///< tokens of sequences that decode
};

/// What a step would take, by how it is divided into lanes. Policies compare; only the order of the figures matters.
/// Replicas of an engine ask it from several threads.
class cost_model {
public:
    virtual ~cost_model();

    /// All tokens in one pass: chunks of prompts ride along with the decoding sequences.
    virtual duration fused(step_shape const& step) const = 0;
    /// Two passes, each with half of the longest prompt's chunk: one computes while the other's sums are under way.
    virtual duration split(step_shape const& step) const = 0;
    /// Two passes: decode on the urgent stream, prompts beside it.
    virtual duration beside(step_shape const& step) const = 0;
};

/// A step as a straight line: a pass has a cost of its own, above all its weights come from memory, and each token adds
/// to it; so with the all-reduces. Of two woven passes the shorter of computation and communication is hidden, but for
/// one layer of it at the ends. It knows nothing of what two streams share: decode beside a prompt costs what two
/// halves cost, so that policies take the halves. A model of a device on which the one is cheaper says so.
class linear_costs final : public cost_model {
public:
    struct line {
        duration pass{};
        duration token{};

        duration of(std::int64_t passes, std::int64_t tokens) const noexcept { return passes * pass + tokens * token; }
    };

    /// `layers` >= 1.
    linear_costs(line compute, line communicate, std::int64_t layers) noexcept
        : compute_(compute)
        , communicate_(communicate)
        , layers_(layers)
    {
    }

    duration fused(step_shape const& step) const override;
    duration split(step_shape const& step) const override;
    duration beside(step_shape const& step) const override;

private:
    duration woven(std::int64_t tokens) const;

    line compute_;
    line communicate_;
    std::int64_t layers_;
};

} // namespace plait
