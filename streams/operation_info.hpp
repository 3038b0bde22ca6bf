#pragma once

#include <cstdint>
#include <string_view>

namespace plait {

/// What an operation on a stream is, for people and for models of its cost. It changes nothing of what is computed.
struct operation_info {
    std::string_view name = "operation"; ///< static: it outlives the stream
    std::int64_t bytes = 0;              ///< read and written, each once, whatever caches there are
    std::int64_t flops = 0;              ///< arithmetic operations; a fused multiply and add are two
};

} // namespace plait
