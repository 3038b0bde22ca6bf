#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/sample.hpp>

namespace plait::host::avx2 {

sample_kernels const sampling = wide::sampling<lanes>::kernels;

} // namespace plait::host::avx2
