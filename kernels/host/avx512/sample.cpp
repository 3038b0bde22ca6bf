#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/sample.hpp>

namespace plait::host::avx512 {

sample_kernels const sampling = wide::sampling<lanes>::kernels;

} // namespace plait::host::avx512
