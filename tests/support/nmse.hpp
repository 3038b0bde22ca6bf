#pragma once

#include <cstddef>
#include <span>

#include <doctest/doctest.h>

namespace plait::test {

/// The squares of the differences over those of the reference: a normalised mean square error.
inline double nmse(std::span<float const> a, std::span<float const> reference)
{
    REQUIRE(a.size() == reference.size());
    double error = 0, power = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        error += (double(a[i]) - reference[i]) * (double(a[i]) - reference[i]);
        power += double(reference[i]) * reference[i];
    }
    return error / power;
}

} // namespace plait::test
