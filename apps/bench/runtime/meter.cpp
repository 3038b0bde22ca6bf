#include <plait/apps/bench/runtime/meter.hpp>

#include <plait/apps/bench/report.hpp>
#include <plait/apps/bench/runtime/allocations.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace plait::bench {

namespace {

time_point now() noexcept
{
    static monotonic_clock clock;
    return clock.now();
}

} // namespace

meter::meter() noexcept
{
    now(); // the first call makes the clock
    allocations_ = allocations();
    began_ = now();
}

double meter::elapsed() const noexcept
{
    return static_cast<double>((now() - began_).count());
}

sample meter::over(std::int64_t operations) const noexcept
{
    auto const time = elapsed();
    auto const count = static_cast<double>(operations);
    return {time / count, static_cast<double>(allocations() - allocations_) / count};
}

laps::laps(std::int64_t operations)
    : part_(std::max<std::int64_t>(operations / static_cast<std::int64_t>(count), 1))
{
    times_.reserve(count);
    whole_ = meter();
    current_ = whole_;
}

void laps::lap() noexcept
{
    times_.push_back(current_.elapsed()); // within what was reserved
    current_ = meter();
}

std::int64_t laps::sum() const noexcept
{
    return static_cast<std::int64_t>(count) * sum_below(part_);
}

sample laps::over() const
{
    auto out = whole_.over(static_cast<std::int64_t>(count) * part_);
    out.value = spread_of(times_).middle / static_cast<double>(part_);
    return out;
}

void check(std::int64_t got, std::int64_t expected, char const* what)
{
    if (got == expected) return;
    throw std::logic_error(std::string(what) + ": " + std::to_string(got) + " instead of " + std::to_string(expected));
}

} // namespace plait::bench
