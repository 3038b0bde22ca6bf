#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/soft_cap.hpp>

namespace plait::host::avx512 {

void soft_cap(soft_cap_args const& args, share part)
{
    wide::soft_cap<lanes>(args, part);
}

} // namespace plait::host::avx512
