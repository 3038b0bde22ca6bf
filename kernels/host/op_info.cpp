#include <plait/kernels/host/op_info.hpp>

#include <algorithm>

namespace plait::host {

namespace {

constexpr std::int64_t number = sizeof(float);

std::int64_t weight_bytes(weight_format format, std::int64_t rows, std::int64_t cols)
{
    return static_cast<std::int64_t>(packed_bytes(format, rows, cols));
}

/// Of one row of a panel.
std::int64_t weight_row_bytes(weight_format format, std::int64_t cols)
{
    return static_cast<std::int64_t>(panel_bytes(format, cols)) / panel_rows;
}

/// Quantised values with a scale and a sum for each block.
std::int64_t q8_bytes(activation_view const& x)
{
    return x.rows * (x.cols + x.cols / block_columns * 2 * number);
}

/// As an operation writes it: in one form or in both.
std::int64_t written_bytes(activation_view const& x)
{
    return (x.f32 != nullptr ? x.rows * x.cols * number : 0) + (x.q8 != nullptr ? q8_bytes(x) : 0);
}

std::int64_t bias_bytes(float const* bias, std::int64_t count)
{
    return bias != nullptr ? count * number : 0;
}

std::int64_t product_input_bytes(weight_format format, activation_view const& x)
{
    return takes_q8(format) ? q8_bytes(x) : x.rows * x.cols * number;
}

/// A token's key and value in one layer.
std::int64_t kv_token_bytes(paged_kv const& kv)
{
    auto const scales = kv.type == kv_type::q8 ? 2 * number : 0;
    return kv.kv_heads * (2 * kv.head_dim * static_cast<std::int64_t>(element_bytes(kv.type)) + scales);
}

std::int64_t rows_of(std::span<sequence_chunk const> chunks)
{
    std::int64_t rows = 0;
    for (auto const& c : chunks)
        rows += c.rows;
    return rows;
}

std::int64_t busy_experts(expert_choice const& choice)
{
    return std::min<std::int64_t>(choice.experts, choice.rows * choice.used);
}

/// Keys that the queries at positions below `end` see, summed over them.
std::int64_t keys_seen(std::int64_t end, std::int64_t window)
{
    auto const growing = window > 0 ? std::min(end, window) : end;
    return growing * (growing + 1) / 2 + (end - growing) * window;
}

} // namespace

operation_info info_of(pack_args const& args)
{
    auto const read = args.rows * static_cast<std::int64_t>(file_row_bytes(args.from, args.cols));
    return {"pack", read + args.rows * weight_row_bytes(args.to, args.cols), 0};
}

operation_info info_of(widen_args const& args)
{
    return {"widen", args.count * (number + (args.from == weight_format::f32 ? 4 : 2)), 0};
}

operation_info info_of(quantise_args const& args)
{
    auto const count = args.x.rows * args.x.cols;
    return {"quantise", count * number + q8_bytes(args.x), 3 * count}; // magnitude, scaling, sum
}

operation_info info_of(gather_tokens_args const& args)
{
    return {"gather_tokens", 2 * args.rows * number, 0};
}

operation_info info_of(embed_args const& args)
{
    auto const row = weight_row_bytes(args.weights.format, args.weights.cols) + args.weights.cols * number;
    auto const& at = args.positions;
    auto const position = at.panels != nullptr ? weight_row_bytes(at.format, at.cols) : 0;
    auto const flops = at.panels != nullptr ? 2 : 1;
    return {"embed", args.rows * (row + position + number), flops * args.rows * args.weights.cols};
}

operation_info info_of(norm_args const& args)
{
    auto const count = args.out.rows * args.out.cols;
    auto const vectors = (args.weight != nullptr) + (args.bias != nullptr);
    auto const bytes = count + vectors * args.out.cols + (args.residual != nullptr ? count : 0);
    // Squares, their sum, the factor and the weight; the mean, the differences and their sum.
    auto const flops = 3 + vectors + (args.kind == norm_kind::layer ? 2 : 0) + (args.residual != nullptr ? 1 : 0);
    return {"norm", bytes * number + written_bytes(args.out), flops * count};
}

operation_info info_of(product_args const& args)
{
    auto const out = args.x.rows * args.w.rows;
    auto const bytes = weight_bytes(args.w.format, args.w.rows, args.w.cols) +
                       product_input_bytes(args.w.format, args.x) + out * number * (args.residual != nullptr ? 2 : 1) +
                       bias_bytes(args.bias, args.w.rows);
    auto const added = (args.residual != nullptr) + (args.bias != nullptr);
    return {"product", bytes, (2 * args.w.cols + added) * out};
}

operation_info info_of(gated_args const& args)
{
    auto const& w = args.gate_up;
    auto const bytes = weight_bytes(w.format, w.rows, w.cols) + product_input_bytes(w.format, args.x) +
                       written_bytes(args.out) + bias_bytes(args.gate_bias, w.rows);
    // The function and the product of the two halves: an exponential, a sum, a division and a product.
    auto const made = args.out.rows * args.out.cols;
    return {"gated", bytes, 2 * args.x.rows * w.rows * w.cols + (args.gate_bias != nullptr ? 6 : 4) * made};
}

operation_info info_of(activated_args const& args)
{
    auto const& w = args.w;
    auto const bytes = weight_bytes(w.format, w.rows, w.cols) + product_input_bytes(w.format, args.x) +
                       written_bytes(args.out) + bias_bytes(args.bias, w.rows);
    // The function counts as in `gated`, without the product.
    return {"activated", bytes, args.x.rows * w.rows * (2 * w.cols + (args.bias != nullptr ? 4 : 3))};
}

operation_info info_of(rope_args const& args)
{
    auto const rows = rows_of(args.chunks);
    auto const turned = args.heads + args.kv.kv_heads;
    auto const read = (turned + args.kv.kv_heads) * args.kv.head_dim * number;
    auto const written = turned * args.kv.head_dim * number + kv_token_bytes(args.kv);
    return {"rope_and_store", rows * (read + written), 3 * rows * turned * args.rope.dims};
}

operation_info info_of(attention_args const& args)
{
    std::int64_t read = 0, seen = 0;
    for (auto const& c : args.chunks) {
        if (c.rows == 0) continue;
        std::int64_t const from = c.first_position, end = from + c.rows;
        std::int64_t const most = std::max<std::int64_t>(end, c.prefix);
        read += most - (args.window > 0 ? std::max<std::int64_t>(0, from - args.window + 1) : 0);
        seen += keys_seen(end, args.window) - keys_seen(from, args.window);
        // Of the prefix a row sees also what comes after it.
        auto const later = [&](std::int64_t p) { return std::max<std::int64_t>(0, c.prefix - 1 - p); };
        seen += (later(from - 1) * later(from) - later(end - 1) * later(end)) / 2;
    }
    auto const width = args.heads * std::int64_t{args.kv.head_dim};
    auto const queries = rows_of(args.chunks) * width * number;
    return {"attention", queries + read * kv_token_bytes(args.kv) + written_bytes(args.out), 4 * seen * width};
}

operation_info info_of(copy_page_args const& args)
{
    std::int64_t bytes = 0;
    for (auto const& layer : args.layers)
        bytes += static_cast<std::int64_t>(page_bytes(layer.type, layer.kv_heads, layer.head_dim));
    return {"copy_pages", 2 * bytes * std::ssize(args.copies), 0};
}

operation_info info_of(add_args const& args)
{
    auto const count = args.rows * args.cols;
    return {"add", 3 * count * number + bias_bytes(args.bias, args.cols), (args.bias != nullptr ? 2 : 1) * count};
}

operation_info info_of(join_columns_args const& args)
{
    return {"join_columns", 2 * args.ranks * args.rows * args.cols * number, 0};
}

operation_info info_of(soft_cap_args const& args)
{
    return {"soft_cap", 2 * args.count * number, (args.cap > 0 ? 4 : 1) * args.count};
}

operation_info info_of(route_args const& args)
{
    auto const read = args.choice.rows * args.experts;
    auto const chosen = args.choice.rows * args.choice.used;
    auto const bytes = read * number + bias_bytes(args.selection_bias, args.experts) + 2 * chosen * number;
    // An exponential, a sum and a division for each score.
    return {"route", bytes, 3 * (args.scoring == expert_scoring::softmax_chosen ? chosen : read)};
}

operation_info info_of(expert_choice const& choice)
{
    return {"list_experts", (2 * choice.rows * choice.used + choice.experts + 1) * number, 0};
}

operation_info info_of(expert_gated_args const& args)
{
    auto const& w = args.gate_up;
    auto const slots = args.choice.rows * args.choice.used;
    auto const weights = weight_bytes(w.format, w.rows, w.cols) + bias_bytes(args.gate_bias, w.rows);
    auto const bytes =
        busy_experts(args.choice) * weights + product_input_bytes(w.format, args.x) + written_bytes(args.out);
    auto const made = slots * args.out.cols;
    return {"expert_gated", bytes, 2 * slots * w.rows * w.cols + (args.gate_bias != nullptr ? 6 : 4) * made};
}

operation_info info_of(expert_product_args const& args)
{
    auto const& w = args.w;
    auto const out = args.choice.rows * args.choice.used * w.rows;
    auto const weights = weight_bytes(w.format, w.rows, w.cols) + bias_bytes(args.bias, w.rows);
    auto const bytes = busy_experts(args.choice) * weights + product_input_bytes(w.format, args.x) + out * number;
    return {"expert_product", bytes, (2 * w.cols + (args.bias != nullptr ? 1 : 0)) * out};
}

operation_info info_of(expert_sum_args const& args)
{
    auto const out = args.choice.rows * args.cols, summed = out * args.choice.used;
    auto const written = args.residual != nullptr ? 2 * out : out;
    return {"expert_sum", (summed + written) * number, 2 * summed + (args.residual != nullptr ? out : 0)};
}

operation_info info_of(draw_args const& args)
{
    auto const count = std::ssize(args.rows) * args.vocabulary;
    return {"draw", count * number, 3 * count}; // the largest, the weights, their sum
}

operation_info info_of(score_args const& args)
{
    // A difference, an exponential and a sum for each logit, which is read twice: for the largest and for the sum.
    auto const read = args.rows * args.vocabulary;
    return {"score", 2 * read * number + 2 * args.rows * number, 3 * read};
}

} // namespace plait::host
