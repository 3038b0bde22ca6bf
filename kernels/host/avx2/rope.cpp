#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/rope.hpp>

namespace plait::host::avx2 {

void rope_and_store(rope_args const& args, share part)
{
    wide::rope_and_store<lanes>(args, part);
}

} // namespace plait::host::avx2
