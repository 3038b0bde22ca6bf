#include <plait/apps/bench/runtime/peers/tbb/tbb.hpp>

#include <plait/apps/bench/runtime/tree.hpp>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include <array>

namespace plait::bench::with_tbb {

namespace {

std::int64_t add(std::int64_t first, std::int64_t leaves)
{
    if (leaves == 1) return first;
    std::array<std::int64_t, branches> sums{};
    tbb::task_group children;
    for (std::int64_t i = 0; i < branches; ++i) {
        children.run([&sums, i, first, leaves] {
            sums[static_cast<std::size_t>(i)] = add(first + i * (leaves / branches), leaves / branches);
        });
    }
    children.wait();
    return total(sums);
}

} // namespace

std::string version()
{
    return TBB_VERSION_STRING;
}

sample tree_of_tasks(std::int64_t n)
{
    tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    auto const leaves = leaves_of(n);
    add(0, leaves_of(warm_up(n)));
    meter m;
    auto const sum = add(0, leaves);
    auto out = m.over(leaves);
    check(sum, sum_below(leaves), "tree");
    return out;
}

} // namespace plait::bench::with_tbb
