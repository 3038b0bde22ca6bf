#pragma once

#include <cstddef>

namespace plait {

/// The bytes [begin, end) of a text.
struct byte_range {
    std::size_t begin = 0;
    std::size_t end = 0;

    friend bool operator==(byte_range const&, byte_range const&) = default;
};

} // namespace plait
