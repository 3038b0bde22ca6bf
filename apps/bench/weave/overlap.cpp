#include <plait/apps/bench/weave/workloads.hpp>

#include <plait/apps/bench/weave/labour.hpp>
#include <plait/apps/bench/weave/ranks.hpp>
#include <plait/streams/weave.hpp>

#include <algorithm>
#include <array>
#include <memory>

namespace plait::bench::weaving {

namespace {

constexpr std::int64_t kernels = 8; // of a part

/// A step of two halves on a rank.
struct halves {
    std::int64_t parts = 0;
    std::int64_t repeats = 0; ///< of a kernel
    bool sums = true;

    task<> run(bench_gpu& g, communicator& group, std::size_t lanes) const
    {
        auto const values = std::make_unique<std::array<labour::values, 2>>();
        std::array<float, 2> numbers{};
        std::int64_t done = 0;
        weave w(g.driven(), lanes, {&group, nullptr});
        labour const first{&(*values)[0], repeats, &done}, second{&(*values)[1], repeats, &done};
        co_await w.run(half(w[0], first, numbers[0]), half(w[1], second, numbers[1]));
        co_await w[0];
        co_await w[1];
        check(done, 2 * kernels * parts, "kernels of two halves");
        for (auto number : numbers)
            check(static_cast<std::int64_t>(number), sums ? 2 : 0, "sum of two ranks");
    }

private:
    task<> half(flow& f, labour one, float& number) const
    {
        static constexpr float summand = 1;
        for (std::int64_t i = 0; i < parts; ++i) {
            for (std::int64_t k = 0; k < kernels; ++k)
                host::put(f, {"labour", 0, 0}, run_labour, one);
            if (sums)
                co_await f.all_reduce(&summand, &number, 1);
            else
                co_await f.turn();
        }
    }
};

} // namespace

sample overlap(duration link, std::int64_t n)
{
    sample out;
    runtime home;
    auto all = [&]() -> task<> {
        host::host_group_options how;
        how.link.latency = link;
        bench_ranks ranks(home, 2, nullptr, how);
        auto time = [&](bool sums, std::size_t lanes) -> task<double> {
            halves const what{n, repeats_for(link * 5 / 4 / kernels), sums};
            auto one = [&](bench_gpu& g, communicator& group) { return what.run(g, group, lanes); };
            meter const m;
            co_await ranks.run(one);
            co_return m.elapsed();
        };
        co_await time(true, 2); // warms up
        // The best of some of each: what else the system runs only adds.
        double woven = 0, computing = 0, in_turn = 0;
        for (int i = 0; i < 4; ++i) {
            auto const least = [i](double& of, double now) { of = i == 0 ? now : std::min(of, now); };
            least(woven, co_await time(true, 2));
            least(computing, co_await time(false, 2));
            least(in_turn, co_await time(true, 1));
        }
        out.value = 100 * (in_turn - woven) / (in_turn - computing - static_cast<double>(link.count()));
        co_await ranks.stop();
    };
    home.run(all());
    return out;
}

} // namespace plait::bench::weaving
