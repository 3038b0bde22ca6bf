#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>

#include <doctest/doctest.h>

#include <plait/actors/simulation.hpp>

namespace plait::test {

/// How many seeds a test takes: `usual`, or `many` times as many where PLAIT_LONG asks for a long hunt.
inline std::uint64_t seeds(std::uint64_t usual, std::uint64_t many = 100)
{
    return std::getenv("PLAIT_LONG") ? many * usual : usual;
}

/// Every seed was run and none failed; otherwise shows the seed and what it threw.
inline void check_all_ran(exploration const& found, std::uint64_t count)
{
    CAPTURE(found.seed);
    if (found.failure) CHECK_NOTHROW(std::rethrow_exception(found.failure));
    CHECK(found.runs == count);
}

} // namespace plait::test
