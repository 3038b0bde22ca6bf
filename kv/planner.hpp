#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <plait/kv/kv_geometry.hpp>

namespace plait {

/// One line of a memory plan: a figure and where it comes from.
struct memory_line {
    std::string name;       ///< "weights", "KV cache", …
    std::string derivation; ///< "30 layers × 3 KV heads × …"
    std::int64_t bytes = 0;
};

/// What must fit in a device's memory.
struct memory_request {
    std::int64_t memory = 0;        ///< bytes that may be used
    std::vector<memory_line> fixed; ///< weights, activations, buffers: what does not grow with the KV cache
    kv_geometry kv;                 ///< what the KV cache is made of
    std::int64_t context = 0;       ///< tokens of the longest sequence
    std::int64_t sequences = 1;     ///< sequences that run at once
    std::int64_t kv_tokens = 0;     ///< tokens that the cache should hold; 0: sequences × context, or as many as fit
};

/// A proof that a configuration fits, made before anything is loaded.
struct memory_plan {
    std::vector<memory_line> lines; ///< the fixed lines, then the KV cache's
    std::int64_t memory = 0;        ///< bytes given
    std::int64_t total = 0;         ///< bytes planned
    std::int64_t pages = 0;         ///< pages of each KV group
    std::int64_t kv_bytes = 0;

    /// Tokens that the KV cache holds.
    std::int64_t kv_tokens() const noexcept { return pages * page_tokens; }
};

/// Plans the memory of one device. Throws error(errc::never_fits), with the derivation, when the fixed part and one
/// sequence of the whole context do not fit in `memory` together; error(errc::invalid_argument) for a request that
/// makes no sense.
memory_plan plan_memory(memory_request const& request);

/// The plan as a table for people: a line for each item, with bytes and derivation, then the total.
std::string to_table(memory_plan const& plan);

/// "1.50 GiB", "93.8 MiB", "512 B".
std::string human_bytes(std::int64_t bytes);

} // namespace plait
