#pragma once

#include <plait/actors/time/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plait::bench {

/// What one turn of a contestant gave.
struct sample {
    double value = 0;       ///< in the row's unit, mostly nanoseconds an operation
    double allocations = 0; ///< an operation; known only while they are counted
};

/// Measures from its making.
class meter {
public:
    meter() noexcept;

    /// Nanoseconds and allocations, each over `operations`.
    sample over(std::int64_t operations) const noexcept;
    /// Nanoseconds.
    double elapsed() const noexcept;

private:
    std::int64_t allocations_ = 0;
    time_point began_{};
};

/// Measures a workload in parts and gives the middle one's time: a part in which the system ran something else on one
/// of the processors is no figure of the workload.
class laps {
public:
    explicit laps(std::int64_t operations);

    /// Operations of a part.
    std::int64_t part() const noexcept { return part_; }
    /// Whether there is another part to do.
    bool left() const noexcept { return times_.size() < count; }
    /// A part has ended; the next one begins.
    void lap() noexcept;
    /// What all of it sums up to, when each part sums the numbers from 0.
    std::int64_t sum() const noexcept;
    /// Nanoseconds and allocations, each over the operations.
    sample over() const;

private:
    static constexpr std::size_t count = 32;
    std::int64_t part_;
    std::vector<double> times_;
    meter whole_;
    meter current_;
};

/// Throws unless `got` is what a workload that did its work ends with.
void check(std::int64_t got, std::int64_t expected, char const* what);

/// How many operations come before the n that are measured.
constexpr std::int64_t warm_up(std::int64_t n) noexcept
{
    return n / 10 + 1;
}

/// The sum of 0 to n - 1.
constexpr std::int64_t sum_below(std::int64_t n) noexcept
{
    return n * (n - 1) / 2;
}

} // namespace plait::bench
