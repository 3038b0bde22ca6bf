#pragma once

#include <plait/streams/share.hpp>

namespace plait::host {

/// x = scale * x; then, with a cap, x = cap * tanh(x * (1 / cap)), as attention caps its scores: `count` values in
/// place, in F32 (Gemma 2, arXiv:2408.00118; the scale of Cohere's logits).
struct soft_cap_args {
    float* x = nullptr;
    std::int64_t count = 0;
    float cap = 0; ///< 0: none
    float scale = 1;
};

namespace scalar {
void soft_cap(soft_cap_args const& args, share part);
}
namespace avx2 {
void soft_cap(soft_cap_args const& args, share part);
}
namespace avx512 {
void soft_cap(soft_cap_args const& args, share part);
}

} // namespace plait::host
