#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/gate.hpp>

namespace plait::host::avx2 {

void gate(gating const& how, float const* gate, float const* up, float* out)
{
    wide::gate<lanes>(how, gate, up, out);
}

void activate(activation function, float const* x, float* out)
{
    lanes::store(out, wide::activated<lanes>(function, lanes::load(x)));
}

} // namespace plait::host::avx2
