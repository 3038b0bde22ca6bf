#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/product.hpp>

namespace plait::host::scalar {

void rms_norm(rms_norm_args const& args, share part)
{
    auto const cols = args.out.cols;
    auto [first, last] = part.range(args.out.rows);
    for (auto i = first; i < last; ++i) {
        float const* x = args.x + (args.row_index ? args.row_index[i] : i) * args.x_stride;
        float lanes[16] = {};
        for (std::int64_t c = 0; c < cols; ++c)
            lanes[c % 16] = std::fma(x[c], x[c], lanes[c % 16]);
        float factor = 1.0f / std::sqrt(sum_lanes(lanes) / static_cast<float>(cols) + args.eps);
        float* out = args.out.f32 ? args.out.f32 + i * cols : reinterpret_cast<float*>(part.scratch.data());
        for (std::int64_t c = 0; c < cols; ++c)
            out[c] = (x[c] * factor) * args.weight[c];
        if (args.out.q8)
            products(isa::scalar)
                .quantise_row(out, cols, args.out.q8 + i * cols, args.out.scales + i * (cols / 32),
                              args.out.sums + i * (cols / 32));
    }
}

} // namespace plait::host::scalar
