#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/attention.hpp>

namespace plait::host::avx2 {

void attention(attention_args const& args, share part)
{
    wide::attention<lanes>(args, part, products(isa::avx2));
}

} // namespace plait::host::avx2
