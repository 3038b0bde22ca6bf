#pragma once

#include <plait/actors/time/clock.hpp>

#include <string_view>

namespace plait {

/// An actor that keeps its thread from others.
struct blocked {
    std::string_view actor; ///< its type
    duration at_least;      ///< how long its turn has taken so far
};

} // namespace plait
