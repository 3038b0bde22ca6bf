#include <plait/kernels/host/gumbel.hpp>
#include <plait/kernels/host/sample.hpp>

namespace plait::host::scalar {

namespace {

bool block_maxima(float const* logits, std::int64_t vocabulary, float* maxima) noexcept
{
    bool ordered = true;
    for (std::int64_t first = 0; first < vocabulary; first += 64) {
        float largest = -math::infinity;
        for (auto t = first; t < first + 64 && t < vocabulary; ++t) {
            ordered = ordered && logits[t] == logits[t];
            largest = largest < logits[t] ? logits[t] : largest;
        }
        maxima[first / 64] = largest;
    }
    return ordered;
}

float exp_sum(float const* logits, std::int64_t vocabulary, float max) noexcept
{
    float lanes[16] = {};
    for (std::int64_t t = 0; t < vocabulary; ++t)
        lanes[t % 16] = lanes[t % 16] + exp(logits[t] - max);
    return sum_lanes(lanes);
}

void weigh(float const* logits, std::int64_t count, float max, float inverse_temperature, std::int64_t* units) noexcept
{
    for (std::int64_t i = 0; i < count; ++i)
        units[i] = weight_units(exp((logits[i] - max) * inverse_temperature));
}

std::uint64_t match(float const* logits, std::int64_t count, float lowest, float highest) noexcept
{
    std::uint64_t bits = 0;
    for (std::int64_t i = 0; i < count; ++i)
        bits |= static_cast<std::uint64_t>(logits[i] >= lowest && logits[i] <= highest) << i;
    return bits;
}

std::int32_t draw(float const* logits, std::int64_t vocabulary, float const*, draw_range const& range,
                  sample_params const& params) noexcept
{
    std::int32_t best = -1;
    float best_score = -math::infinity;
    for (std::int32_t t = 0; t < vocabulary; ++t) {
        if (!range.keeps(logits[t], t)) continue;
        float score = (logits[t] - range.max) * range.inverse_temperature + gumbel(token_bits(params, t));
        if (best < 0 || score > best_score) {
            best = t;
            best_score = score;
        }
    }
    return best;
}

} // namespace

sample_kernels const sampling = {block_maxima, exp_sum, weigh, match, draw};

} // namespace plait::host::scalar
