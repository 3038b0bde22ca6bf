#include <plait/kernels/host/product.hpp>

#include <plait/kernels/host/gated_layer.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/product_tiles.hpp>

#include <algorithm>

namespace plait::host {

namespace {

using namespace detail;

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

void run_activated(product_kernels const& k, activated_args const& args, share part)
{
    constexpr std::int64_t block_panels = block_columns / panel_rows;
    auto& w = args.w;
    auto panel = static_cast<std::int64_t>(panel_bytes(w.format, w.cols));
    auto multiply = k.multiply[static_cast<int>(w.format)];
    auto make_blocks = [&](activation_tile const& x, std::int64_t token, std::int64_t first, std::int64_t last) {
        alignas(64) float values[most_tile_tokens * 64];
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

constexpr product_table scalar_table = make_table<scalar_product_kernels>();
#if defined(__x86_64__)
constexpr product_table avx2_table = make_table<avx2_product_kernels>();
constexpr product_table avx512_table = make_table<avx512_product_kernels>();
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
