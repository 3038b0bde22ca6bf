#pragma once

#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/wide/rows.hpp>

#include <cmath>

namespace plait::host::wide {

template<class L>
void rms_norm(rms_norm_args const& args, share part, product_table const& table)
{
    auto const cols = args.out.cols;
    auto [first, last] = part.range(args.out.rows);
    for (auto i = first; i < last; ++i) {
        float const* x = args.x + (args.row_index ? args.row_index[i] : i) * args.x_stride;
        float factor = 1.0f / std::sqrt(square_sum<L>(x, cols) / static_cast<float>(cols) + args.eps);
        float* out = args.out.f32 ? args.out.f32 + i * cols : reinterpret_cast<float*>(part.scratch.data());
        scale_row<L>(x, factor, args.weight, cols, out);
        if (args.out.q8)
            table.quantise_row(out, cols, args.out.q8 + i * cols, args.out.scales + i * (cols / 32),
                               args.out.sums + i * (cols / 32));
    }
}

} // namespace plait::host::wide
