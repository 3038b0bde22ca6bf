#pragma once

#include <plait/engine/options.hpp>

#include <cstdint>
#include <optional>

namespace plait::chat {

/// The largest context that fits in memory: the model's own, halved as often as it takes, but not below 256 tokens.
/// Empty where even that does not fit. Throws as plait::plan().
std::optional<std::int64_t> largest_context(engine_options options);

} // namespace plait::chat
