#include <plait/apps/bench/weave/workloads.hpp>

#include <plait/apps/bench/weave/ranks.hpp>
#include <plait/streams/buffer.hpp>
#include <plait/streams/weave.hpp>

#include <algorithm>
#include <memory>

namespace plait::bench::weaving {

sample all_reduce(int ranks, std::int64_t floats, std::int64_t n)
{
    sample out;
    runtime home;
    auto all = [&]() -> task<> {
        auto const pool = std::make_shared<host::compute_pool>(home, runtime::available_cpus());
        bench_ranks members(home, ranks, pool, {});
        auto time = [&](std::int64_t count) -> task<sample> {
            auto rank = [&, count](bench_gpu& g, communicator& group) -> task<> {
                buffer const memory(g.dev(), static_cast<std::size_t>(2 * floats) * sizeof(float));
                auto* const in = reinterpret_cast<float*>(memory.data());
                auto* const sum = in + floats;
                std::fill_n(in, floats, static_cast<float>(group.rank() + 1));
                weave w(g.driven(), 1, {&group, nullptr});
                auto sums = [&](flow& f) -> task<> {
                    for (std::int64_t i = 0; i < count; ++i)
                        co_await f.all_reduce(in, sum, floats);
                };
                co_await w.run(sums(w[0]));
                co_await w[0];
                check(static_cast<std::int64_t>(sum[floats - 1]), sum_below(ranks + 1), "sum of the ranks");
            };
            meter const m;
            co_await members.run(rank);
            co_return m.over(count);
        };
        co_await time(warm_up(n));
        out = co_await time(n);
        out.value /= 1e3;
        co_await members.stop();
    };
    home.run(all());
    return out;
}

} // namespace plait::bench::weaving
