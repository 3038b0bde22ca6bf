#include <plait/kernels/host/experts.hpp>
#include <plait/kernels/host/gated_layer.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/product_tiles.hpp>

#include <algorithm>

namespace plait::host {

namespace detail {

namespace {

/// What reading an item's weights costs, in tokens that it is computed for.
constexpr std::int64_t weights_cost = 8;

/// Calls `run(expert, its entries, tile, first token, first unit, last unit)` for this worker's share of the experts'
/// units times their tokens, by cost. Row entry / divisor of `x` is an entry's token.
template<class Run>
void for_each_expert(product_kernels const& k, weight_format format, activation_view const& x,
                     expert_choice const& choice, std::int32_t divisor, std::int64_t units, std::int64_t group,
                     share part, Run run)
{
    auto for_busy = [&](auto visit) {
        for (std::int32_t e = 0; e < choice.experts; ++e) {
            token_list const tokens{choice.first[e + 1] - choice.first[e], choice.entries + choice.first[e], divisor};
            if (tokens.count == 0) continue;
            tile_work const work{k,     format, x, tokens, {k, format, x.cols, tokens.count, 1, part.scratch.size()},
                                 units, group};
            visit(e, work, tokens.count / work.plan.chunks + weights_cost);
        }
    };
    std::int64_t total = 0;
    for_busy([&](std::int32_t, tile_work const& work, std::int64_t cost) { total += work.items() * cost; });
    auto const begin = total * part.index / part.count, end = total * (part.index + 1) / part.count;
    std::int64_t passed = 0; // cost of the experts before this one
    for_busy([&](std::int32_t e, tile_work const& work, std::int64_t cost) {
        // An item belongs to whoever owns its start.
        auto const items = work.items();
        auto item_at = [&](std::int64_t at) { return std::clamp<std::int64_t>(ceil_div(at - passed, cost), 0, items); };
        work.for_items(item_at(begin), item_at(end), part.scratch,
                       [&](activation_tile const& tile, std::int64_t token, std::int64_t first, std::int64_t last) {
                           run(e, work.tokens.entries, tile, token, first, last);
                       });
        passed += items * cost;
    });
}

weight_view expert_of(weight_view first, std::size_t bytes, std::int32_t expert) noexcept
{
    first.panels += static_cast<std::size_t>(expert) * bytes;
    return first;
}

} // namespace

void run_expert_gated(product_kernels const& k, expert_gated_args const& args, share part)
{
    auto const& w = args.gate_up;
    auto const cols = args.out.cols;
    for_each_expert(k, w.format, args.x, args.choice, args.choice.used, ceil_div(cols, block_columns), 1, part,
                    [&](std::int32_t expert, std::int32_t const* entries, activation_tile const& x, std::int64_t token,
                        std::int64_t first, std::int64_t last) {
                        gated_layer const layer{k,
                                                expert_of(w, args.expert_bytes, expert),
                                                args.out,
                                                {args.function, args.alpha, args.limit},
                                                args.gate_bias ? args.gate_bias + expert * cols : nullptr,
                                                args.up_bias ? args.up_bias + expert * cols : nullptr};
                        for (auto block = first; block < last; ++block)
                            layer.make(x, block, [&](int t) { return std::int64_t{entries[token + t]}; });
                    });
}

void run_expert_product(product_kernels const& k, expert_product_args const& args, share part)
{
    auto const& w = args.w;
    auto panel = static_cast<std::int64_t>(panel_bytes(w.format, w.cols));
    auto multiply = k.multiply[static_cast<int>(w.format)];
    auto make = [&](std::int32_t expert, std::int32_t const* entries, activation_tile const& x, std::int64_t first,
                    std::int64_t last) {
        alignas(64) float values[most_tile_tokens * 64];
        auto row = first * panel_rows;
        tile_args tile;
        tile.panels = expert_of(w, args.expert_bytes, expert).panels + first * panel;
        tile.panel_count = last - first;
        tile.rows = std::min(w.rows, last * panel_rows) - row;
        tile.cols = w.cols;
        tile.x = x;
        tile.out = values;
        tile.out_stride = 64;
        tile.bias = args.bias ? args.bias + expert * w.rows + row : nullptr;
        multiply(tile);
        for (int t = 0; t < x.tokens; ++t)
            std::copy_n(values + t * 64, tile.rows, args.out + entries[t] * w.rows + row);
    };
    for_each_expert(k, w.format, args.x, args.choice, 1, ceil_div(w.rows, panel_rows), group_panels, part,
                    [&](std::int32_t expert, std::int32_t const* entries, activation_tile const& x, std::int64_t token,
                        std::int64_t first, std::int64_t last) {
                        for (; first < last; first += group_panels)
                            make(expert, entries + token, x, first, std::min(last, first + group_panels));
                    });
}

} // namespace detail

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
