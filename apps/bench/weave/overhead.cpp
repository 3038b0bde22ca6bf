#include <plait/apps/bench/weave/workloads.hpp>

#include <plait/apps/bench/report.hpp>
#include <plait/apps/bench/runtime/processors.hpp>
#include <plait/apps/bench/weave/bench_gpu.hpp>
#include <plait/apps/bench/weave/labour.hpp>
#include <plait/streams/weave.hpp>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace plait::bench::weaving {

namespace {

constexpr std::size_t flows = 2;
constexpr std::int64_t parts = 60; // of a flow in a step: thirty layers
constexpr std::int64_t turns = static_cast<std::int64_t>(flows) * parts;
constexpr operation_info kernel{"labour", 0, 0};

/// A step of two flows, both ways: the same kernels in the same order.
class step {
public:
    step(bench_gpu& g, std::int64_t kernels, std::int64_t repeats)
        : gpu_(g)
        , kernels_(kernels)
    {
        for (std::size_t i = 0; i < flows; ++i)
            labours_[i] = {&(*values_)[i], repeats, &done_};
    }

    task<> woven()
    {
        weave w(gpu_.driven(), flows);
        co_await w.run(half(w[0], labours_[0]), half(w[1], labours_[1]));
        co_await w[0];
        co_await w[1];
        count();
    }

    task<> by_hand()
    {
        auto& on = static_cast<host::host_stream&>(gpu_.driven().stream_of(stream_role::compute));
        for (std::int64_t i = 0; i < parts; ++i)
            for (auto const& one : labours_)
                for (std::int64_t k = 0; k < kernels_; ++k)
                    on.put(kernel, run_labour, one);
        co_await on.last();
        count();
    }

private:
    task<> half(flow& f, labour one)
    {
        for (std::int64_t i = 0; i < parts; ++i) {
            for (std::int64_t k = 0; k < kernels_; ++k)
                host::put(f, kernel, run_labour, one);
            co_await f.turn();
        }
    }

    void count() { check(std::exchange(done_, 0), turns * kernels_, "kernels of a step"); }

    bench_gpu& gpu_;
    std::int64_t kernels_;
    std::unique_ptr<std::array<labour::values, flows>> values_ = std::make_unique<std::array<labour::values, flows>>();
    std::array<labour, flows> labours_;
    std::int64_t done_ = 0;
};

void on_gpu(bench_gpu::body const& what)
{
    runtime home;
    auto g = make_bench_gpu(home, std::make_shared<host::compute_pool>(home, 1), processor(0));
    auto all = [&]() -> task<> {
        co_await ask<&bench_gpu::run>(g, what);
        co_await stop(g);
    };
    home.run(all());
}

sample steps(std::int64_t n, task<> (step::*one)())
{
    sample out;
    auto body = [&](bench_gpu& g) -> task<> {
        using namespace std::chrono_literals;
        step s(g, 4, repeats_for(5us));
        co_await (s.*one)(); // warms up
        meter const m;
        for (std::int64_t i = 0; i < n; ++i)
            co_await (s.*one)();
        out = m.over(n * turns);
    };
    on_gpu(body);
    return out;
}

} // namespace

sample woven(std::int64_t n)
{
    return steps(n, &step::woven);
}

sample by_hand(std::int64_t n)
{
    return steps(n, &step::by_hand);
}

sample a_turn(std::int64_t n)
{
    sample out;
    auto body = [&](bench_gpu& g) -> task<> {
        step s(g, 1, 1);
        std::vector<double> more;
        for (std::int64_t i = 0; i < warm_up(n) + n; ++i) {
            meter const first;
            co_await s.woven();
            auto const woven = first.elapsed();
            meter const second;
            co_await s.by_hand();
            if (i >= warm_up(n)) more.push_back((woven - second.elapsed()) / static_cast<double>(turns));
        }
        out.value = spread_of(more).middle;
    };
    on_gpu(body);
    return out;
}

} // namespace plait::bench::weaving
