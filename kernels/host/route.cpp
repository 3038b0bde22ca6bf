#include <plait/kernels/host/route.hpp>

#include <algorithm>
#include <limits>
#include <span>

namespace plait::host {

namespace {

/// The index of the greatest value, the lowest of equals, without those in `taken`, which are ascending. There is one.
std::int32_t best_of(std::span<float const> values, std::span<std::int32_t const> taken) noexcept
{
    std::int32_t best = -1;
    auto next = taken.begin();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(values.size()); ++i) {
        if (next != taken.end() && *next == i)
            ++next;
        else if (best < 0 || values[static_cast<std::size_t>(i)] > values[static_cast<std::size_t>(best)])
            best = i;
    }
    return best;
}

/// Writes the indices of the greatest values, ascending.
void choose(std::span<float const> values, std::span<std::int32_t> to) noexcept
{
    for (std::size_t n = 0; n < to.size(); ++n) {
        auto const best = best_of(values, to.first(n));
        auto* const end = to.data() + n;
        auto* const place = std::upper_bound(to.data(), end, best);
        std::copy_backward(place, end, end + 1);
        *place = best;
    }
}

float sum_of_two_best(std::span<float const> values) noexcept
{
    auto best = -std::numeric_limits<float>::infinity(), second = best;
    for (auto value : values) {
        second = std::max(second, std::min(best, value));
        best = std::max(best, value);
    }
    return values.size() == 1 ? best : best + second;
}

/// Leaves only the experts of the best groups in the contest. `memory` is for a sum and an index of each group.
void drop_groups(route_args const& args, std::span<float> ranked, std::byte* memory) noexcept
{
    auto const groups = static_cast<std::size_t>(args.groups), size = ranked.size() / groups;
    std::span<float> const sums{reinterpret_cast<float*>(memory), groups};
    std::span<std::int32_t> const chosen{reinterpret_cast<std::int32_t*>(memory + groups * sizeof(float)),
                                         static_cast<std::size_t>(args.groups_used)};
    for (std::size_t g = 0; g < groups; ++g)
        sums[g] = sum_of_two_best(ranked.subspan(g * size, size));
    choose(sums, chosen);
    for (std::size_t g = 0; g < groups; ++g)
        if (!std::ranges::binary_search(chosen, static_cast<std::int32_t>(g)))
            std::ranges::fill(ranked.subspan(g * size, size), -std::numeric_limits<float>::infinity());
}

void weigh(route_kernels const& kernels, route_args const& args, float const* scores, std::int32_t const* ids,
           float* weights) noexcept
{
    auto const used = args.choice.used;
    for (std::int32_t s = 0; s < used; ++s)
        weights[s] = scores[ids[s]];
    if (args.scoring == expert_scoring::softmax_chosen) kernels.softmax(weights, used, weights);
    if (args.renormalise) {
        float sum = 0;
        for (std::int32_t s = 0; s < used; ++s)
            sum += weights[s];
        sum += 1e-20f;
        for (std::int32_t s = 0; s < used; ++s)
            weights[s] = weights[s] / sum;
    }
    for (std::int32_t s = 0; s < used; ++s)
        weights[s] = weights[s] * args.scale;
}

} // namespace

void route(route_kernels const& kernels, route_args const& args, share part)
{
    auto const& choice = args.choice;
    auto const count = static_cast<std::size_t>(args.experts);
    std::span<float> const scores{reinterpret_cast<float*>(part.scratch.data()), count};
    std::span<float> const ranked{scores.data() + count, count};
    auto* const rest = reinterpret_cast<std::byte*>(ranked.data() + count);
    auto [begin, end] = part.range(choice.rows);
    for (auto row = begin; row < end; ++row) {
        auto const* logits = args.logits + row * args.experts;
        if (args.scoring == expert_scoring::softmax)
            kernels.softmax(logits, args.experts, scores.data());
        else if (args.scoring == expert_scoring::sigmoid)
            kernels.sigmoid(logits, args.experts, scores.data());
        else
            std::copy_n(logits, count, scores.data());
        for (std::size_t e = 0; e < count; ++e)
            ranked[e] = args.selection_bias ? scores[e] + args.selection_bias[e] : scores[e];
        if (args.groups_used < args.groups) drop_groups(args, ranked, rest);
        auto const at = row * choice.used;
        choose(ranked, {choice.ids + at, static_cast<std::size_t>(choice.used)});
        weigh(kernels, args, scores.data(), choice.ids + at, choice.weights + at);
    }
}

void list_experts(expert_choice const& choice, share part)
{
    // Each worker goes through all choices, and keeps those of its experts: no worker waits for another's counts.
    auto [begin, end] = part.range(choice.experts);
    if (begin == end) return;
    auto const slots = choice.rows * choice.used;
    auto* const next = reinterpret_cast<std::int32_t*>(part.scratch.data());
    std::fill_n(next, end - begin, 0);
    std::int32_t before = 0;
    for (std::int64_t i = 0; i < slots; ++i) {
        if (!choice.here(choice.ids[i])) continue;
        std::int64_t const expert = choice.ids[i] - choice.first_expert;
        if (expert < begin)
            ++before;
        else if (expert < end)
            ++next[expert - begin];
    }
    for (auto expert = begin; expert < end; ++expert) {
        auto const mine = next[expert - begin];
        choice.first[expert] = next[expert - begin] = before;
        before += mine;
    }
    if (end == choice.experts) choice.first[end] = before;
    for (std::int64_t i = 0; i < slots; ++i) {
        std::int64_t const expert = std::int64_t{choice.ids[i]} - choice.first_expert;
        if (expert >= begin && expert < end) choice.entries[next[expert - begin]++] = static_cast<std::int32_t>(i);
    }
}

} // namespace plait::host
