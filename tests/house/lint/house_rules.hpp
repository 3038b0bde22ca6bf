#pragma once

#include <plait/tests/house/lint/source.hpp>

#include <vector>

namespace plait::house {

/// The rules of the house for one file:
/// `floor`: a folder includes only itself and lower floors, always as <plait/floor/name.hpp>;
/// `runtime-only`: threads, clocks, sleeping and randomness come from actors/runtime* and actors/clock*; a test may
/// start threads and read clocks, and nothing sleeps;
/// `asio-bridge`: Asio stays out of every library header but actors/asio.hpp and those in actors/asio/;
/// `length`: at most 400 lines in a header, 900 in a source;
/// `pragma-once`, `macro`, `accessor`: headers begin with #pragma once, define no macro and no function called get_*.
std::vector<finding> check_house(source const& file);

} // namespace plait::house
