#include <algorithm>
#include <tuple>

#include <plait/engine/load_balance.hpp>

namespace plait {

load_balance::place load_balance::take(std::shared_ptr<load_balance> const& from, std::int64_t choices)
{
    choices = std::max<std::int64_t>(choices, 1); // of a request that will be refused, too
    std::lock_guard lock(from->mutex_);
    auto const least =
        std::ranges::min_element(from->replicas_, {}, [](one const& r) { return std::tuple(r.closed, r.choices); });
    least->choices += choices;
    return {from, static_cast<std::size_t>(least - from->replicas_.begin()), choices};
}

void load_balance::place::give_back(std::int64_t choices) noexcept
{
    if (choices <= 0) return;
    std::lock_guard lock(of_->mutex_);
    choices_ -= choices;
    of_->replicas_[replica_].choices -= choices;
}

void load_balance::close(std::size_t replica) noexcept
{
    std::lock_guard lock(mutex_);
    replicas_[replica].closed = true;
}

} // namespace plait
