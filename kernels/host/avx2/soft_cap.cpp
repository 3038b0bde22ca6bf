#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/soft_cap.hpp>

namespace plait::host::avx2 {

void soft_cap(soft_cap_args const& args, share part)
{
    wide::soft_cap<lanes>(args, part);
}

} // namespace plait::host::avx2
