#pragma once

#include <plait/kernels/host/soft_cap.hpp>
#include <plait/kernels/host/wide/rows.hpp>

namespace plait::host::wide {

template<class L>
void soft_cap(soft_cap_args const& args, share part)
{
    auto [first, last] = part.range(args.count, 16);
    for (auto i = first; i < last; i += 16) {
        auto value = L::mul(L::set(args.scale), load_part<L>(args.x + i, last - i));
        if (args.cap > 0) value = L::mul(L::set(args.cap), L::tanh(L::mul(value, L::set(1.0f / args.cap))));
        store_part<L>(args.x + i, last - i, value);
    }
}

} // namespace plait::host::wide
