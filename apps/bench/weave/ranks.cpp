#include <plait/apps/bench/weave/ranks.hpp>

#include <plait/actors/tasks/when_all.hpp>
#include <plait/apps/bench/runtime/processors.hpp>

#include <utility>

namespace plait::bench {

bench_ranks::bench_ranks(runtime& home, int ranks, std::shared_ptr<host::compute_pool> const& shared,
                         host::host_group_options how)
    : group_(host::make_host_group(home, ranks, std::move(how)))
{
    for (std::size_t rank = 0; rank < group_.size(); ++rank) {
        auto pool = shared ? shared : std::make_shared<host::compute_pool>(home, 1);
        gpus_.push_back(make_bench_gpu(home, std::move(pool), shared ? std::nullopt : processor(rank % 2)));
    }
}

task<> bench_ranks::run(body what)
{
    std::vector<task<>> all;
    for (std::size_t rank = 0; rank < gpus_.size(); ++rank) {
        bench_gpu::body one = [&what, &member = *group_[rank]](bench_gpu& g) { return what(g, member); };
        all.push_back(ask<&bench_gpu::run>(gpus_[rank], std::move(one)));
    }
    co_await when_all(std::move(all));
}

task<> bench_ranks::stop()
{
    for (auto const& g : gpus_)
        co_await plait::stop(g);
}

} // namespace plait::bench
