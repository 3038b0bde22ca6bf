#include <plait/apps/bench/runtime/plait/plait.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/apps/bench/runtime/allocations.hpp>

#include <vector>

namespace plait::bench::with_plait {

namespace {

class idler : public actor {
public:
    explicit idler(std::int64_t value)
        : value_(value)
    {
    }
    std::int64_t value() const { return value_; }

private:
    std::int64_t value_;
};

} // namespace

sample idle_actor(std::int64_t n)
{
    runtime home;
    std::vector<ref<idler>> all;
    all.reserve(static_cast<std::size_t>(n));
    auto sum = [&]() -> task<std::int64_t> {
        std::int64_t out = 0;
        for (auto const& one : all)
            out += co_await ask<&idler::value>(one);
        co_return out;
    };
    count_allocations counting;
    auto const before = allocated_bytes();
    for (std::int64_t i = 0; i < n; ++i)
        all.push_back(home.spawn<idler>(i));
    auto const made = static_cast<double>(allocated_bytes() - before);
    check(home.run(sum()), sum_below(n), "idle actors");
    return {made / static_cast<double>(n), 0};
}

} // namespace plait::bench::with_plait
