#include <plait/kernels/host/experts.hpp>

#include <algorithm>

namespace plait::host {

namespace {

/// Columns whose sums stay in the nearest cache from slot to slot.
constexpr std::int64_t sum_columns = 512;

} // namespace

void expert_sum(expert_sum_args const& args, share part)
{
    auto const& choice = args.choice;
    auto const pieces = (args.cols + sum_columns - 1) / sum_columns;
    auto [first, last] = part.range(choice.rows * pieces);
    for (auto item = first; item < last; ++item) {
        auto const row = item / pieces, column = item % pieces * sum_columns;
        auto const count = std::min(sum_columns, args.cols - column);
        float sum[sum_columns];
        std::fill_n(sum, count, 0.0f);
        for (auto slot = row * choice.used; slot < (row + 1) * choice.used; ++slot) {
            if (!choice.here(choice.ids[slot])) continue;
            auto const* y = args.y + slot * args.cols + column;
            for (std::int64_t c = 0; c < count; ++c)
                sum[c] += choice.weights[slot] * y[c];
        }
        auto const at = row * args.cols + column;
        for (std::int64_t c = 0; c < count; ++c) {
            auto const value = args.scale * sum[c];
            args.to[at + c] = args.residual ? args.residual_scale * args.residual[at + c] + value : value;
        }
    }
}

} // namespace plait::host
