#pragma once

#include <cstdint>

/// Every program that links this has its operator new, and what makes exceptions, replaced by ones that can count; not
/// under a sanitizer, where nothing is counted.
namespace plait::bench {

inline constexpr bool allocations_are_counted = PLAIT_BENCH_COUNTS;

/// While one lives, what operator new and operator delete do is counted, in all threads and whoever calls them: plait,
/// a peer, the standard library. Otherwise nothing is, so that counting costs no timed run anything.
class count_allocations {
public:
    count_allocations() noexcept;
    count_allocations(count_allocations const&) = delete;
    count_allocations& operator=(count_allocations const&) = delete;
    ~count_allocations();
};

/// Allocations counted since the program began; an exception that is made is one.
std::int64_t allocations() noexcept;
/// Bytes counted as allocated and not freed since, as the heap rounds them.
std::int64_t allocated_bytes() noexcept;

} // namespace plait::bench
