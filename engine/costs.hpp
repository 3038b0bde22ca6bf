#pragma once

#include <cstdint>

#include <plait/actors/time/clock.hpp>

namespace plait {

/// What a step computes, as far as its time depends on it.
struct step_shape {
    std::int64_t prefill = 0; ///< tokens of prompts
    std::int64_t decode = 0;  ///< tokens of sequences that decode
    std::int64_t context = 0; ///< tokens in the KV cache that those attend to
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

/// What two streams of a device are to each other.
struct streams_beside {
    /// That a token in the KV cache of a sequence that decodes takes: memory's time.
    duration context{};
    /// 0: two passes take what they take one after the other, as on the host, where every operation has all
    /// processors. 1: what the roofline allows. Measured as (one after the other - beside) / (one after the other -
    /// roofline).
    double overlap = 0;
};

/// A step as a straight line: a pass has a cost of its own, above all its weights come from memory, and each token adds
/// to it; so with the all-reduces. Of two woven passes the shorter of computation and communication is hidden, but for
/// one layer of it at the ends.
///
/// Beside each other two passes share the device. A pass waits for memory, which brings its weights and what its
/// sequences attend to, and for arithmetic, which each token adds to; while one waits for memory, the other computes.
/// So both together take no less than all that comes from memory, than all arithmetic, and than each of them alone: the
/// roofline of two passes instead of one operation (Williams, Waterman and Patterson, doi:10.1145/1498765.1498785). How
/// much of that a device reaches is `streams_beside::overlap`.
class linear_costs final : public cost_model {
public:
    struct line {
        duration pass{};
        duration token{};

        duration of(std::int64_t passes, std::int64_t tokens) const noexcept { return passes * pass + tokens * token; }
    };

    /// `layers` >= 1; without `two`, all that decode and attend to is free, and streams are as the host's.
    linear_costs(line compute, line communicate, std::int64_t layers, streams_beside two = {}) noexcept
        : compute_(compute)
        , communicate_(communicate)
        , layers_(layers)
        , two_(two)
    {
    }

    duration fused(step_shape const& step) const override;
    duration split(step_shape const& step) const override;
    duration beside(step_shape const& step) const override;

private:
    duration woven(duration computes, std::int64_t tokens) const;

    line compute_;
    line communicate_;
    std::int64_t layers_;
    streams_beside two_;
};

} // namespace plait
