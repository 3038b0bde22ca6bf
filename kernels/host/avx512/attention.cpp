#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/attention.hpp>

namespace plait::host::avx512 {

void attention(attention_args const& args, share part)
{
    wide::attention<lanes>(args, part, products(isa::avx512));
}

} // namespace plait::host::avx512
