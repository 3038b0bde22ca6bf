#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/apps/bench/runtime/tree.hpp>

#include <vector>

namespace plait::bench::with_plait {

namespace {

task<std::int64_t> add(std::int64_t first, std::int64_t leaves)
{
    if (leaves == 1) co_return first;
    std::vector<task<std::int64_t>> children;
    children.reserve(branches);
    for (std::int64_t i = 0; i < branches; ++i)
        children.push_back(add(first + i * (leaves / branches), leaves / branches));
    auto const sums = co_await when_all(std::move(children));
    co_return total(sums);
}

/// One for each node and each leaf of the tree; the inner ones make the next.
class node : public actor {
public:
    task<std::int64_t> add(std::int64_t first, std::int64_t leaves)
    {
        if (leaves == 1) co_return first;
        std::vector<task<std::int64_t>> asks;
        asks.reserve(branches);
        for (std::int64_t i = 0; i < branches; ++i) {
            asks.push_back(ask<&node::add>(home().spawn<node>(), first + i * (leaves / branches), leaves / branches));
        }
        auto const sums = co_await when_all(std::move(asks));
        co_return total(sums);
    }
};

} // namespace

sample tree_of_tasks(std::int64_t n)
{
    runtime home;
    auto const leaves = leaves_of(n);
    home.run(add(0, leaves_of(warm_up(n))));
    meter m;
    auto const sum = home.run(add(0, leaves));
    auto out = m.over(leaves);
    check(sum, sum_below(leaves), "tree");
    return out;
}

sample tree_of_actors(std::int64_t n)
{
    runtime home;
    auto const leaves = leaves_of(n);
    auto add = [&](std::int64_t count) {
        return home.run(task<std::int64_t>(ask<&node::add>(home.spawn<node>(), std::int64_t{0}, count)));
    };
    add(leaves_of(warm_up(n)));
    meter m;
    auto const sum = add(leaves);
    auto out = m.over(leaves);
    check(sum, sum_below(leaves), "tree");
    return out;
}

} // namespace plait::bench::with_plait
