#include <plait/apps/bench/weave/labour.hpp>

#include <plait/apps/bench/runtime/meter.hpp>

#include <algorithm>
#include <memory>

namespace plait::bench {

namespace {

/// Nanoseconds of one repeat, when nobody else has the processor: the best of many.
double measure_repeat()
{
    constexpr std::int64_t repeats = 200;
    void (*const volatile kernel)(labour const&, share) = run_labour; // inlined, it would be left out
    auto const values = std::make_unique<labour::values>();
    std::int64_t done = 0;
    double best = 0;
    for (int i = 0; i < 200; ++i) {
        meter const m;
        kernel({values.get(), repeats, &done}, {});
        auto const time = m.elapsed() / static_cast<double>(repeats);
        best = i == 0 ? time : std::min(best, time);
    }
    return best;
}

} // namespace

void run_labour(labour const& args, share part)
{
    if (part.index != 0) return;
    auto& all = *args.at;
    for (std::int64_t i = 0; i < args.repeats; ++i)
        for (auto& v : all)
            v = v * 1664525u + 1013904223u; // each from the one before: no compiler leaves a repeat out
    ++*args.done;
}

std::int64_t repeats_for(duration time)
{
    static double const each = measure_repeat();
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(time.count()) / each));
}

} // namespace plait::bench
