#pragma once

#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <algorithm>
#include <span>

/// How products are cut into tiles of tokens and units of panels. For files that are compiled for no instruction set of
/// their own.
namespace plait::host::detail {

/// Panels that go through a tile of tokens together: a gated block of 32 outputs is two of the gate and two of the up
/// projection; floating-point kernels keep up to four streams of weights in flight.
inline constexpr std::int64_t group_panels = 4;

/// Bytes of activations that a worker goes over again and again; the rest of a core's second-level cache (1 MiB and up)
/// is for the panels.
inline constexpr std::size_t chunk_bytes = 640 * 1024;

inline constexpr std::int64_t most_chunk_tokens = 512;

/// The integers beside a tile's activations (activation_tile::bias): a multiple of the sums of `runs` parts of each
/// block.
struct bias_form {
    explicit bias_form(weight_format format) noexcept
    {
        auto form = layout_of(format);
        runs = form.run_columns == 16 ? 2 : 1;
        factor = form.minima && runs == 2 ? 1 : -form.offset;
    }
    int runs;
    int factor; ///< 0: none are needed
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept
{
    return (a + b - 1) / b;
}

/// Hands out a worker's scratch in pieces of whole cache lines.
class scratch_arena {
public:
    explicit scratch_arena(std::span<std::byte> memory) noexcept
        : memory_(memory)
    {
    }

    template<class T>
    T* take(std::int64_t count) noexcept
    {
        auto bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
        if (bytes > memory_.size()) return nullptr;
        auto start = memory_.data();
        memory_ = memory_.subspan(bytes);
        return reinterpret_cast<T*>(start);
    }

private:
    std::span<std::byte> memory_;
};

/// How a call's tokens become tiles: `chunks` of tiles that fit the scratch memory, each of at most `tile` tokens.
class token_plan {
public:
    token_plan(product_kernels const& k, weight_format format, std::int64_t cols, std::int64_t tokens,
               std::int64_t pieces, std::size_t scratch) noexcept
    {
        bool q8 = takes_q8(format);
        auto words = 2 + bias_form(format).runs;
        // Per token; a piece of the arena wastes less than a line for each tile, which the budget leaves room for.
        auto bytes = static_cast<std::size_t>(q8 ? cols + words * (cols / block_columns) * 4 : cols * 4) + 4 * 64;
        auto fits = std::min(static_cast<std::int64_t>(std::min(scratch, chunk_bytes) / bytes), most_chunk_tokens);
        auto most = std::int64_t{k.most_tokens[static_cast<int>(format)]};
        // One tile may fill the scratch; a token that doesn't fit is read where it lies.
        if (fits < most) fits = std::min(most, static_cast<std::int64_t>(scratch / bytes));
        tile = std::clamp<std::int64_t>(fits, 1, most);
        auto chunk = std::max<std::int64_t>(fits / tile * tile, tile);
        chunks = std::max(ceil_div(tokens, chunk), std::min(pieces, ceil_div(tokens, tile)));
        tokens_ = tokens;
    }

    std::int64_t first(std::int64_t chunk) const noexcept { return tokens_ * chunk / chunks; }

    std::int64_t tile = 1;
    std::int64_t chunks = 1;

private:
    std::int64_t tokens_ = 0;
};

/// Which tokens of a call's activations go through a matrix: all of them, or those that entries name.
struct token_list {
    std::int64_t count = 0;
    std::int32_t const* entries = nullptr;
    std::int32_t divisor = 1;

    std::int64_t operator[](std::int64_t i) const noexcept { return entries ? entries[i] / divisor : i; }
};

inline activation_tile arrange(product_kernels const& k, weight_format format, activation_view const& x,
                               token_list const& list, std::int64_t first, int tokens, scratch_arena& arena)
{
    auto blocks = x.cols / block_columns;
    auto stride = x.row_features();
    std::int64_t rows[most_tile_tokens];
    for (int t = 0; t < tokens; ++t)
        rows[t] = list[first + t];
    activation_tile tile;
    tile.tokens = tokens;
    if (!takes_q8(format)) {
        tile.f32 = x.f32 + rows[0] * stride;
        if (tokens > 1) {
            auto to = arena.take<float>(tokens * x.cols);
            for (int t = 0; t < tokens; ++t)
                for (std::int64_t c = 0; c < x.cols; ++c)
                    to[c * tokens + t] = x.f32[rows[t] * stride + c];
            tile.f32 = to;
        }
        return tile;
    }
    arrange_target to;
    bias_form bias(format);
    if (bias.factor != 0) to.bias = arena.take<std::int32_t>(tokens * blocks * bias.runs);
    if (tokens > 1) {
        to.q8 = arena.take<std::int8_t>(tokens * x.cols);
        to.scales = arena.take<float>(tokens * blocks);
        to.sums = arena.take<float>(tokens * blocks);
    }
    if (tokens > 1 || bias.factor != 0) k.arrange(x, rows, tokens, bias.factor, bias.runs, to);
    tile.q8 = tokens > 1 ? to.q8 : x.q8 + rows[0] * stride;
    tile.scales = tokens > 1 ? to.scales : x.scales + rows[0] * (stride / block_columns);
    tile.sums = tokens > 1 ? to.sums : x.sums + rows[0] * (stride / block_columns);
    tile.bias = to.bias;
    return tile;
}

/// A matrix's units (what one worker makes alone) times the tokens that go through it. Its items are a chunk's units,
/// chunk after chunk.
struct tile_work {
    product_kernels const& k;
    weight_format format;
    activation_view const& x;
    token_list tokens;
    token_plan plan;
    std::int64_t units;
    std::int64_t group; ///< units that go through all tiles together

    std::int64_t items() const noexcept { return plan.chunks * units; }

    /// Calls `run(tile, first token, first unit, last unit)` for some items, a group of units through all tiles of a
    /// chunk: so its weights come from memory once for them.
    template<class Run>
    void for_items(std::int64_t first_item, std::int64_t last_item, std::span<std::byte> scratch, Run run) const
    {
        for (auto item = first_item; item < last_item;) {
            auto chunk = item / units;
            auto unit = item - chunk * units;
            auto last_unit = std::min(units, unit + last_item - item);
            item += last_unit - unit;

            auto first_token = plan.first(chunk), count = plan.first(chunk + 1) - first_token;
            auto tiles = ceil_div(count, plan.tile);
            scratch_arena arena(scratch);
            if (tiles == 1) {
                run(arrange(k, format, x, tokens, first_token, static_cast<int>(count), arena), first_token, unit,
                    last_unit);
                continue;
            }
            activation_tile arranged[most_chunk_tokens];
            for (std::int64_t i = 0; i < tiles; ++i) {
                auto from = count * i / tiles, to = count * (i + 1) / tiles;
                arranged[i] = arrange(k, format, x, tokens, first_token + from, static_cast<int>(to - from), arena);
            }
            for (; unit < last_unit; unit += group)
                for (std::int64_t i = 0; i < tiles; ++i)
                    run(arranged[i], first_token + count * i / tiles, unit, std::min(last_unit, unit + group));
        }
    }
};

/// Calls `run` for this worker's share of `units` times the tokens of `x`. With many workers and few units the tokens
/// are split as well.
template<class Run>
void for_each_tile(product_kernels const& k, weight_format format, activation_view const& x, std::int64_t units,
                   std::int64_t group, share part, Run run)
{
    if (x.rows <= 0 || units <= 0) return;
    auto workers = static_cast<std::int64_t>(part.count);
    auto pieces = units >= 4 * workers ? 1 : ceil_div(4 * workers, units);
    tile_work work{k, format, x, {x.rows}, {k, format, x.cols, x.rows, pieces, part.scratch.size()}, units, group};
    auto [first, last] = part.range(work.items());
    work.for_items(first, last, part.scratch, run);
}

} // namespace plait::host::detail
