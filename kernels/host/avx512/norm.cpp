#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/norm.hpp>

namespace plait::host::avx512 {

void norm(norm_args const& args, share part)
{
    wide::norm<lanes>(args, part, products(isa::avx512));
}

} // namespace plait::host::avx512
