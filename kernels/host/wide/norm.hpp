#pragma once

#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/wide/norm_row.hpp>

namespace plait::host::wide {

template<class L>
void norm(norm_args const& args, share part, product_table const& table)
{
    auto const cols = args.out.cols;
    auto const stride = args.out.row_features();
    auto [first, last] = part.range(args.out.rows);
    for (auto i = first; i < last; ++i) {
        float const* x = args.x + (args.row_index ? args.row_index[i] : i) * args.x_stride;
        float* out = args.out.f32 ? args.out.f32 + i * stride : reinterpret_cast<float*>(part.scratch.data());
        float const* residual = args.residual ? args.residual + i * stride : nullptr;
        row_norm<L> const row(args.kind, x, cols, args.eps);
        for (std::int64_t c = 0; c < cols; c += 16) {
            auto const count = cols - c;
            auto value = row.values(x, args.weight, c);
            if (args.bias) value = L::add(value, load_part<L>(args.bias + c, count));
            value = L::mul(L::set(args.scale), value);
            if (residual) value = L::add(L::mul(L::set(args.residual_scale), load_part<L>(residual + c, count)), value);
            store_part<L>(out + c, count, value);
        }
        if (args.out.q8)
            table.quantise_row(out, cols, args.out.q8 + i * stride, args.out.scales + i * (stride / 32),
                               args.out.sums + i * (stride / 32));
    }
}

} // namespace plait::host::wide
