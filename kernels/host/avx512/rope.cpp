#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/rope.hpp>

namespace plait::host::avx512 {

void rope_and_store(rope_args const& args, share part)
{
    wide::rope_and_store<lanes>(args, part);
}

} // namespace plait::host::avx512
