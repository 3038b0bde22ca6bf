#pragma once

#include <plait/kernels/ops.hpp>
#include <plait/kernels/sampler.hpp>
#include <plait/streams/operation_info.hpp>

/// What an operation moves and computes, from its shapes alone. Weights count as they are packed, keys and values as
/// they are stored and only those that somebody sees, activations as the operation reads and writes them. Look-ups,
/// conversions and table walks are no arithmetic; an exponential or a root is one operation. Which experts rows have
/// chosen is not known: they count as different ones, as far as there are, and all as being here.
namespace plait::host {

operation_info info_of(pack_args const& args);
operation_info info_of(widen_args const& args);
operation_info info_of(quantise_args const& args);
operation_info info_of(gather_tokens_args const& args);
operation_info info_of(embed_args const& args);
operation_info info_of(norm_args const& args);
operation_info info_of(product_args const& args);
operation_info info_of(gated_args const& args);
operation_info info_of(activated_args const& args);
operation_info info_of(rope_args const& args);
operation_info info_of(attention_args const& args);
operation_info info_of(copy_page_args const& args);
operation_info info_of(add_args const& args);
operation_info info_of(join_columns_args const& args);
operation_info info_of(soft_cap_args const& args);
operation_info info_of(route_args const& args);
operation_info info_of(expert_choice const& choice);
operation_info info_of(expert_gated_args const& args);
operation_info info_of(expert_product_args const& args);
operation_info info_of(expert_sum_args const& args);
operation_info info_of(draw_args const& args);
operation_info info_of(score_args const& args);

} // namespace plait::host
