#pragma once

#include <string>

namespace plait::test {

/// A command for a shell in the source's folder that runs the running test case again, alone, with `setting`, an
/// environment variable: `PLAIT_SEED=4711 build/release/bin/plait-actors-tests -tc="a sentence"`.
std::string replay_command(std::string const& setting);

} // namespace plait::test
