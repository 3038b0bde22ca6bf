#include <plait/actors/runtime/runtime_list.hpp>

namespace plait::detail {

constinit runtime_list all_runtimes;

listed_runtime::listed_runtime(actor_registry const& actors, run_registry const& tasks) noexcept
    : actors_(&actors)
    , tasks_(&tasks)
{
    std::lock_guard lock(all_runtimes.mutex);
    next_ = all_runtimes.first;
    if (next_) next_->previous_ = this;
    all_runtimes.first = this;
}

listed_runtime::~listed_runtime()
{
    std::lock_guard lock(all_runtimes.mutex);
    (previous_ ? previous_->next_ : all_runtimes.first) = next_;
    if (next_) next_->previous_ = previous_;
}

} // namespace plait::detail
