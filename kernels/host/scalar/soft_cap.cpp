#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/soft_cap.hpp>

namespace plait::host::scalar {

void soft_cap(soft_cap_args const& args, share part)
{
    auto [first, last] = part.range(args.count, 16);
    for (auto i = first; i < last; ++i) {
        float value = args.scale * args.x[i];
        args.x[i] = args.cap > 0 ? args.cap * tanh(value * (1.0f / args.cap)) : value;
    }
}

} // namespace plait::host::scalar
