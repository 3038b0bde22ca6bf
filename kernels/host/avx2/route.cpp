#include <plait/kernels/host/avx2/lanes.hpp>
#include <plait/kernels/host/wide/route.hpp>

namespace plait::host::avx2 {

route_kernels const routing = wide::routing<lanes>::kernels;

} // namespace plait::host::avx2
