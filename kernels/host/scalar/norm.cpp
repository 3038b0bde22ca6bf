#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/product.hpp>
#include <plait/kernels/host/scalar/norm_row.hpp>

namespace plait::host::scalar {

void norm(norm_args const& args, share part)
{
    auto const cols = args.out.cols;
    auto const stride = args.out.row_features();
    auto [first, last] = part.range(args.out.rows);
    for (auto i = first; i < last; ++i) {
        float const* x = args.x + (args.row_index ? args.row_index[i] : i) * args.x_stride;
        float* out = args.out.f32 ? args.out.f32 + i * stride : reinterpret_cast<float*>(part.scratch.data());
        float const* residual = args.residual ? args.residual + i * stride : nullptr;
        auto const in = measure(args.kind, x, cols, args.eps);
        for (std::int64_t c = 0; c < cols; ++c) {
            float value = normalised(in, x[c], args.weight ? args.weight + c : nullptr);
            if (args.bias) value = value + args.bias[c];
            value = args.scale * value;
            out[c] = residual ? args.residual_scale * residual[c] + value : value;
        }
        if (args.out.q8)
            products(isa::scalar)
                .quantise_row(out, cols, args.out.q8 + i * stride, args.out.scales + i * (stride / 32),
                              args.out.sums + i * (stride / 32));
    }
}

} // namespace plait::host::scalar
