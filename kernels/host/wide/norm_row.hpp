#pragma once

#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/wide/rows.hpp>

#include <cmath>

namespace plait::host::wide {

/// The norm of a row (norm_args), sixteen columns at a time.
template<class L>
class row_norm {
public:
    row_norm(norm_kind kind, float const* x, std::int64_t cols, float eps) noexcept
        : layer_(kind == norm_kind::layer)
        , cols_(cols)
    {
        if (kind == norm_kind::none) return;
        auto const count = static_cast<float>(cols);
        if (layer_) {
            auto sum = L::set(0);
            for (std::int64_t c = 0; c < cols; c += 16)
                sum = L::add(sum, load_part<L>(x + c, cols - c));
            mean_ = L::sum(sum) / count;
        }
        // Adding the square of a 0 changes no bit of a sum that isn't negative.
        auto sum = L::set(0);
        for (std::int64_t c = 0; c < cols; c += 16) {
            auto d = load_part<L>(x + c, cols - c);
            if (layer_) {
                d = L::sub(d, L::set(mean_));
                if (cols - c < 16) d = L::keep(d, 0, static_cast<int>(cols - c), L::set(0));
            }
            sum = L::fma(d, d, sum);
        }
        factor_ = 1.0f / std::sqrt(L::sum(sum) / count + eps);
    }

    /// Columns `c` and up, times `weight` unless that is null.
    typename L::vector values(float const* x, float const* weight, std::int64_t c) const noexcept
    {
        auto value = load_part<L>(x + c, cols_ - c);
        if (layer_) value = L::sub(value, L::set(mean_));
        value = L::mul(value, L::set(factor_));
        return weight ? L::mul(value, load_part<L>(weight + c, cols_ - c)) : value;
    }

private:
    bool layer_;
    std::int64_t cols_;
    float mean_ = 0;
    float factor_ = 1;
};

} // namespace plait::host::wide
