#pragma once

#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/product_tiles.hpp>

namespace plait::host::detail {

/// Writes a block of 32 outputs of a token, of which `values` has all that are wanted.
inline void store_block(product_kernels const& k, activation_view const& out, std::int64_t row, std::int64_t block,
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
inline void copy_bias(float const* from, std::int64_t first, std::int64_t count, float* to)
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
        alignas(64) float both[most_tile_tokens * 64];
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

} // namespace plait::host::detail
