#pragma once

#include <cstddef>
#include <cstdint>

namespace plait {

/// What one template may use up. A template comes with a model file, from anyone: each bound turns a runaway template
/// into `errc::template_failed` long before the process notices. The defaults leave a factor of a hundred over what
/// published templates need for a conversation that fills a context of a million tokens.
struct template_limits {
    std::size_t source_bytes = 256 * 1024;        ///< length of the template itself
    std::uint64_t steps = 20'000'000;             ///< nodes evaluated, items visited, work on long texts
    unsigned depth = 200;                         ///< nesting of expressions, statements, macro calls and values
    std::size_t output_bytes = 16 * 1024 * 1024;  ///< the rendered text
    std::size_t memory_bytes = 512 * 1024 * 1024; ///< all values a rendering makes, counted as they are made
};

} // namespace plait
