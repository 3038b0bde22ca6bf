#pragma once

#include <plait/kernels/host/math.hpp>
#include <plait/kernels/host/route.hpp>
#include <plait/kernels/host/wide/rows.hpp>

namespace plait::host::wide {

template<class L>
struct routing {
    static void softmax(float const* x, std::int64_t count, float* out) noexcept
    {
        // A lane beyond the last is -infinity, whose exponential is 0.
        auto load = [&](std::int64_t c) {
            auto v = load_part<L>(x + c, count - c);
            return count - c < 16 ? L::keep(v, 0, static_cast<int>(count - c), L::set(-math::infinity)) : v;
        };
        auto most = L::set(-math::infinity);
        for (std::int64_t c = 0; c < count; c += 16)
            most = L::max(load(c), most);
        auto const largest = L::set(L::largest(most));
        auto sum = L::set(0);
        for (std::int64_t c = 0; c < count; c += 16) {
            auto e = L::exp(L::sub(load(c), largest));
            sum = L::add(sum, e);
            store_part<L>(out + c, count - c, e);
        }
        auto const total = L::set(L::sum(sum));
        for (std::int64_t c = 0; c < count; c += 16)
            store_part<L>(out + c, count - c, L::div(load_part<L>(out + c, count - c), total));
    }

    static void sigmoid(float const* x, std::int64_t count, float* out) noexcept
    {
        auto const one = L::set(1);
        for (std::int64_t c = 0; c < count; c += 16) {
            auto v = load_part<L>(x + c, count - c);
            store_part<L>(out + c, count - c, L::div(one, L::add(one, L::exp(L::negate(v)))));
        }
    }

    static constexpr route_kernels kernels = {softmax, sigmoid};
};

} // namespace plait::host::wide
