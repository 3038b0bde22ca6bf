#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <filesystem>
#include <string>

namespace plait::bench {

/// The compiler whose time a header's time is.
inline constexpr auto compiler = "clang++-19";

/// Whether that compiler is there.
bool has_compiler();

/// Milliseconds in which the compiler looks at `source` and makes nothing of it, its own start included. Headers are
/// looked for in `headers`, too. Throws error(errc::io) when it finds the source wrong.
sample compile(std::string const& source, std::filesystem::path const& headers);

} // namespace plait::bench
