#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/norm.hpp>

namespace plait::host::avx2 {

void norm(norm_args const& args, share part)
{
    wide::norm<lanes>(args, part, products(isa::avx2));
}

} // namespace plait::host::avx2
