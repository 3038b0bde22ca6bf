#pragma once

#include <plait/kernels/host/gate.hpp>
#include <plait/kernels/host/product.hpp>

/// What an instruction set provides to product.cpp, which splits the work, arranges the activations and calls these.
/// Files compiled for an instruction set include nothing with inline functions of external linkage that they call:
/// the linker might keep their copy for everyone.
namespace plait::host::detail {

/// Most tokens of a tile, whatever the instruction set.
inline constexpr int most_tile_tokens = 16;

/// A block whose greatest magnitude is below this is quantised to zeros: the reciprocal of its scale might overflow.
inline constexpr float quantise_smallest = 0x1p-100f;

/// The activations of a tile of `tokens` tokens, in the order in which a kernel reads them: all tokens of block 0, then
/// of block 1 and so on. One token's row already has this order.
struct activation_tile {
    int tokens = 1;
    float const* f32 = nullptr;      ///< [column][token], for f32, f16 and bf16
    std::int8_t const* q8 = nullptr; ///< [block][token][32]
    float const* scales = nullptr;   ///< [block][token]
    float const* sums = nullptr;     ///< [block][token], for minima of 32 columns
    /// [block][token][run of columns that share a scale]: minus the weights' offset times the sum of q8, where they
    /// have one. Of q2_k, whose minima are of 16 columns, the sum itself.
    std::int32_t const* bias = nullptr;
};

/// Some panels times one tile.
struct tile_args {
    std::byte const* panels = nullptr; ///< the first of `panel_count` adjacent ones
    std::int64_t panel_count = 0;
    std::int64_t rows = 0; ///< outputs wanted, at most 16 * panel_count and more than 16 * (panel_count - 1)
    std::int64_t cols = 0;
    activation_tile x;
    float* out = nullptr; ///< of the first row and the tile's first token
    std::int64_t out_stride = 0;
    float const* residual = nullptr; ///< laid out like `out`
    float const* bias = nullptr;     ///< of the first row
    float scale = 1;
    float residual_scale = 1;
};

/// Where `arrange` writes; sizes as in activation_tile. `scales` and `sums` may be null: the caller reads them
/// elsewhere.
struct arrange_target {
    std::int8_t* q8 = nullptr;
    float* scales = nullptr;
    float* sums = nullptr;
    std::int32_t* bias = nullptr;
};

using tile_kernel = void (*)(tile_args const&);

struct product_kernels {
    int most_tokens[weight_format_count];      ///< of a tile, by weight_format; at most most_tile_tokens
    tile_kernel multiply[weight_format_count]; ///< by weight_format
    /// Writes `tokens` rows of `x` as a tile; a null pointer of the target is left out.
    /// bias = factor * (sum of q8), for each of the `runs` (1 or 2) equal parts of a block.
    void (*arrange)(activation_view const& x, std::int64_t const* rows, int tokens, int factor, int runs,
                    arrange_target const& to);
    void (*quantise_row)(float const*, std::int64_t, std::int8_t*, float*, float*);
    gate_kernel gate;
    activate_kernel activate;
};

product_kernels const& scalar_product_kernels() noexcept;
product_kernels const& avx2_product_kernels() noexcept;
product_kernels const& avx512_product_kernels() noexcept;

// experts.cpp
void run_expert_gated(product_kernels const& kernels, expert_gated_args const& args, share part);
void run_expert_product(product_kernels const& kernels, expert_product_args const& args, share part);

} // namespace plait::host::detail
