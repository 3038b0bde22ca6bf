#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/experts.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/streams/device.hpp>
#include <plait/streams/flow.hpp>

namespace plait {

// What an operation computes is described by a plain value: pointers to device memory, sizes, numbers. The same
// description serves every device, so the host's are the ones that are used here.
using host::activated_args;
using host::attention_args;
using host::copy_page_args;
using host::embed_args;
using host::expert_choice;
using host::expert_gated_args;
using host::expert_product_args;
using host::expert_sum_args;
using host::gated_args;
using host::norm_args;
using host::page_copy;
using host::product_args;
using host::rope_args;
using host::route_args;
using host::soft_cap_args;

/// Which token a row of a step stands for: a token id, or -1 - slot for the token that was sampled last into `slot`,
/// which the host may not know yet.
struct gather_tokens_args {
    std::int32_t const* tokens = nullptr;
    std::int64_t rows = 0;
    std::int32_t const* slots = nullptr; ///< the newest token of each slot
    std::int32_t* out = nullptr;
};

/// Repacks rows of a matrix from the file's order to the device's (host::pack_rows). `rows` lie at `file_rows` in host
/// memory.
struct pack_args {
    weight_format from = weight_format::f32;
    weight_format to = weight_format::f32;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::byte const* file_rows = nullptr;
    std::byte* panels = nullptr;
    std::int64_t first_row = 0;
    host::interleave place;
};

/// out[i] = values[i] + plus in F32, `count` of them; `from` is f32, f16 or bf16. `values` lie in host memory.
struct widen_args {
    weight_format from = weight_format::f32;
    std::int64_t count = 0;
    std::byte const* values = nullptr;
    float* out = nullptr;
    float plus = 0;
};

/// Fills in `q8`, `scales` and `sums` of an activation from its `f32`.
struct quantise_args {
    activation_view x;
};

/// to = residual_scale * to + scale * (what + bias), rows x cols in F32, each operation rounded. A null bias takes no
/// part; a multiplication by 1 changes nothing.
struct add_args {
    float const* what = nullptr;
    float* to = nullptr;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    float const* bias = nullptr; ///< `cols` values
    float scale = 1;
    float residual_scale = 1;
};

/// Puts the columns that `ranks` ranks have made side by side: out[row][r * cols + c] = shards[r][row][c], F32.
struct join_columns_args {
    float const* shards = nullptr; ///< ranks × rows × cols
    std::int32_t ranks = 1;
    std::int64_t rows = 0;
    std::int64_t cols = 0; ///< of a shard
    float* out = nullptr;  ///< rows × (ranks × cols)
};

/// The operations of a decoder, put on the stream of a flow. Each returns at once; the memory that its arguments point
/// to must stay as it is until the flow's ticket has passed. One implementation for each kind of device; what an
/// operation computes is the same for all and is defined beside its arguments.
class ops {
public:
    virtual ~ops() = default;

    virtual void pack(flow& f, pack_args const& args) = 0;
    virtual void widen(flow& f, widen_args const& args) = 0;
    virtual void quantise(flow& f, quantise_args const& args) = 0;
    virtual void gather_tokens(flow& f, gather_tokens_args const& args) = 0;
    virtual void embed(flow& f, embed_args const& args) = 0;
    virtual void norm(flow& f, norm_args const& args) = 0;
    virtual void product(flow& f, product_args const& args) = 0;
    virtual void gated(flow& f, gated_args const& args) = 0;
    virtual void activated(flow& f, activated_args const& args) = 0;
    virtual void rope_and_store(flow& f, rope_args const& args) = 0;
    virtual void attention(flow& f, attention_args const& args) = 0;
    virtual void copy_pages(flow& f, copy_page_args const& args) = 0;
    virtual void add(flow& f, add_args const& args) = 0;
    virtual void join_columns(flow& f, join_columns_args const& args) = 0;
    virtual void soft_cap(flow& f, soft_cap_args const& args) = 0;
    virtual void route(flow& f, route_args const& args) = 0;
    virtual void expert_gated(flow& f, expert_gated_args const& args) = 0;
    virtual void expert_product(flow& f, expert_product_args const& args) = 0;
    virtual void expert_sum(flow& f, expert_sum_args const& args) = 0;
};

/// The host's operations in one instruction set, which must be available.
std::unique_ptr<ops> make_host_ops(host::isa set);

} // namespace plait
