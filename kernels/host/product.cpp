#include <plait/kernels/host/product.hpp>

#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/experts.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/product_kernels.hpp>

#include <algorithm>

namespace plait::host {

namespace {

using detail::activation_tile;
using detail::product_kernels;
using detail::tile_args;

/// Panels that go through a tile of tokens together: a gated block of 32 outputs is two of the gate and two of the up
/// projection; floating-point kernels keep up to four streams of weights in flight.
constexpr std::int64_t group_panels = 4;

/// Bytes of activations that a worker goes over again and again; the rest of a core's second-level cache (1 MiB and up)
/// is for the panels.
constexpr std::size_t chunk_bytes = 640 * 1024;

constexpr std::int64_t most_chunk_tokens = 512;

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

activation_tile arrange(product_kernels const& k, weight_format format, activation_view const& x,
                        token_list const& list, std::int64_t first, int tokens, scratch_arena& arena)
{
    auto blocks = x.cols / block_columns;
    auto stride = x.row_features();
    std::int64_t rows[detail::most_tile_tokens];
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
    detail::arrange_target to;
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

void run_product(product_kernels const& k, product_args const& args, share part)
{
    auto& w = args.w;
    auto panel = static_cast<std::int64_t>(panel_bytes(w.format, w.cols));
    auto multiply = k.multiply[static_cast<int>(w.format)];
    for_each_tile(k, w.format, args.x, ceil_div(w.rows, panel_rows), group_panels, part,
                  [&](activation_tile const& x, std::int64_t token, std::int64_t first, std::int64_t last) {
                      tile_args tile;
                      tile.panels = w.panels + first * panel;
                      tile.panel_count = last - first;
                      tile.rows = std::min(w.rows, last * panel_rows) - first * panel_rows;
                      tile.cols = w.cols;
                      tile.x = x;
                      auto at = token * args.out_stride + first * panel_rows;
                      tile.out = args.out + at;
                      tile.out_stride = args.out_stride;
                      tile.residual = args.residual ? args.residual + at : nullptr;
                      tile.bias = args.bias ? args.bias + first * panel_rows : nullptr;
                      tile.scale = args.scale;
                      tile.residual_scale = args.residual_scale;
                      multiply(tile);
                  });
}

/// Writes a block of 32 outputs of a token, of which `values` has all that are wanted.
void store_block(product_kernels const& k, activation_view const& out, std::int64_t row, std::int64_t block,
                 float const* values)
{
    auto column = block * block_columns;
    if (out.f32) std::copy_n(values, std::min(block_columns, out.cols - column), out.f32 + row * out.cols + column);
    if (out.q8) {
        auto at = row * (out.cols / block_columns) + block;
        k.quantise_row(values, block_columns, out.q8 + row * out.cols + column, out.scales + at, out.sums + at);
    }
}

/// Sixteen biases, zeros beyond the last.
void copy_bias(float const* from, std::int64_t first, std::int64_t count, float* to)
{
    for (std::int64_t i = 0; i < panel_rows; ++i)
        to[i] = first + i < count ? from[first + i] : 0.0f;
}

/// A gated layer, of which a block of 32 outputs is made at a time.
struct gated_layer {
    product_kernels const& k;
    weight_view w;
    activation_view const& out;
    gating how;
    float const* gate_bias;
    float const* up_bias;

    std::int64_t blocks() const noexcept { return ceil_div(out.cols, block_columns); }

    /// `row_of(t)` is where token t of the tile goes.
    template<class Row>
    void make(activation_tile const& x, std::int64_t block, Row row_of) const
    {
        // Per token: 16 of the gate, 16 of the up projection, twice.
        alignas(64) float both[detail::most_tile_tokens * 64];
        alignas(64) float bias[64];
        tile_args tile;
        auto first = block * group_panels;
        tile.panels = w.panels + first * static_cast<std::int64_t>(panel_bytes(w.format, w.cols));
        tile.panel_count = std::min(group_panels, 2 * ceil_div(out.cols, panel_rows) - first);
        tile.rows = tile.panel_count * panel_rows;
        tile.cols = w.cols;
        tile.x = x;
        tile.out = both;
        tile.out_stride = 64;
        if (gate_bias) {
            for (std::int64_t p = 0; p < tile.panel_count; ++p)
                copy_bias(p % 2 == 0 ? gate_bias : up_bias, (first + p) / 2 * panel_rows, out.cols,
                          bias + p * panel_rows);
            tile.bias = bias;
        }
        k.multiply[static_cast<int>(w.format)](tile);
        for (int t = 0; t < x.tokens; ++t) {
            alignas(64) float values[32];
            auto from = both + t * 64;
            for (std::int64_t p = 0; p < tile.panel_count; p += 2)
                k.gate(how, from + p * 16, from + p * 16 + 16, values + p * 8);
            store_block(k, out, row_of(t), block, values);
        }
    }
};

void run_gated(product_kernels const& k, gated_args const& args, share part)
{
    gated_layer const layer{
        k, args.gate_up, args.out, {args.function, args.alpha, args.limit}, args.gate_bias, args.up_bias};
    for_each_tile(k, layer.w.format, args.x, layer.blocks(), 1, part,
                  [&](activation_tile const& x, std::int64_t token, std::int64_t first, std::int64_t last) {
                      for (auto block = first; block < last; ++block)
                          layer.make(x, block, [&](int t) { return token + t; });
                  });
}

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
        alignas(64) float values[detail::most_tile_tokens * 64];
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

void run_activated(product_kernels const& k, activated_args const& args, share part)
{
    constexpr std::int64_t block_panels = block_columns / panel_rows;
    auto& w = args.w;
    auto panel = static_cast<std::int64_t>(panel_bytes(w.format, w.cols));
    auto multiply = k.multiply[static_cast<int>(w.format)];
    auto make_blocks = [&](activation_tile const& x, std::int64_t token, std::int64_t first, std::int64_t last) {
        alignas(64) float values[detail::most_tile_tokens * 64];
        alignas(64) float bias[64];
        auto row = first * block_columns;
        tile_args tile;
        tile.panels = w.panels + first * block_panels * panel;
        tile.panel_count = ceil_div(std::min(w.rows, last * block_columns) - row, panel_rows);
        tile.rows = tile.panel_count * panel_rows;
        tile.cols = w.cols;
        tile.x = x;
        tile.out = values;
        tile.out_stride = 64;
        if (args.bias) {
            for (std::int64_t p = 0; p < tile.panel_count; ++p)
                copy_bias(args.bias, row + p * panel_rows, w.rows, bias + p * panel_rows);
            tile.bias = bias;
        }
        multiply(tile);
        for (int t = 0; t < x.tokens; ++t) {
            for (std::int64_t p = 0; p < tile.panel_count; ++p)
                k.activate(args.function, values + t * 64 + p * 16, values + t * 64 + p * 16);
            for (auto block = first; block < last; ++block)
                store_block(k, args.out, token + t, block, values + t * 64 + (block - first) * block_columns);
        }
    };
    for_each_tile(k, w.format, args.x, ceil_div(w.rows, block_columns), group_panels / block_panels, part,
                  [&](activation_tile const& x, std::int64_t token, std::int64_t first, std::int64_t last) {
                      for (auto block = first; block < last; block += group_panels / block_panels)
                          make_blocks(x, token, block, std::min(last, block + group_panels / block_panels));
                  });
}

template<product_kernels const& (*Kernels)() noexcept>
constexpr product_table make_table() noexcept
{
    return {[](product_args const& args, share part) { run_product(Kernels(), args, part); },
            [](gated_args const& args, share part) { run_gated(Kernels(), args, part); },
            [](activated_args const& args, share part) { run_activated(Kernels(), args, part); },
            [](expert_gated_args const& args, share part) { run_expert_gated(Kernels(), args, part); },
            [](expert_product_args const& args, share part) { run_expert_product(Kernels(), args, part); },
            [](float const* x, std::int64_t cols, std::int8_t* q8, float* scales, float* sums) {
                Kernels().quantise_row(x, cols, q8, scales, sums);
            }};
}

constexpr product_table scalar_table = make_table<detail::scalar_product_kernels>();
#if defined(__x86_64__)
constexpr product_table avx2_table = make_table<detail::avx2_product_kernels>();
constexpr product_table avx512_table = make_table<detail::avx512_product_kernels>();
#endif

} // namespace

product_table const& products(isa set) noexcept
{
#if defined(__x86_64__)
    if (set == isa::avx512) return avx512_table;
    if (set == isa::avx2) return avx2_table;
#endif
    (void)set;
    return scalar_table;
}

} // namespace plait::host
