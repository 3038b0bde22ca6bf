#include <plait/kernels/host/avx512/lanes.hpp>
#include <plait/kernels/host/wide/route.hpp>

namespace plait::host::avx512 {

route_kernels const routing = wide::routing<lanes>::kernels;

} // namespace plait::host::avx512
