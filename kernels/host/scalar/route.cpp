#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/route.hpp>

namespace plait::host::scalar {

namespace {

void softmax(float const* x, std::int64_t count, float* out)
{
    float largest = -math::infinity;
    for (std::int64_t c = 0; c < count; ++c)
        largest = x[c] > largest ? x[c] : largest;
    float lanes[16] = {};
    for (std::int64_t c = 0; c < count; ++c) {
        out[c] = exp(x[c] - largest);
        lanes[c % 16] = lanes[c % 16] + out[c];
    }
    float const sum = sum_lanes(lanes);
    for (std::int64_t c = 0; c < count; ++c)
        out[c] = out[c] / sum;
}

void sigmoid(float const* x, std::int64_t count, float* out)
{
    for (std::int64_t c = 0; c < count; ++c)
        out[c] = 1.0f / (1.0f + exp(-x[c]));
}

} // namespace

route_kernels const routing = {softmax, sigmoid};

} // namespace plait::host::scalar
