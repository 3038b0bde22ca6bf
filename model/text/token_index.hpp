#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// A quick hash of short byte strings; the high bits are the good ones.
inline std::uint64_t hash_bytes(std::string_view bytes) noexcept
{
    std::uint64_t h = bytes.size();
    while (!bytes.empty()) {
        std::uint64_t word = 0;
        std::size_t const n = std::min<std::size_t>(8, bytes.size());
        std::memcpy(&word, bytes.data(), n);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
        bytes.remove_prefix(n);
    }
    return h * 0x9E3779B97F4A7C15u;
}

/// Token texts to ids, while a tokenizer is built. A node-based map took more time than all the rest of building.
class token_index {
public:
    /// `texts` must outlive the index, which starts empty.
    explicit token_index(std::vector<std::string> const& texts)
        : texts_(texts)
        , shift_(64u - static_cast<unsigned>(std::countr_zero(std::bit_ceil(2 * texts.size() + 2))))
        , entries_(std::size_t{1} << (64u - shift_))
    {
    }

    /// The id of `text`, or -1.
    std::int32_t find(std::string_view text) const noexcept { return entries_[slot(text, hash_bytes(text))].id; }

    /// Adds the text of `id`; returns the id that has this text already, or -1.
    std::int32_t add(std::int32_t id)
    {
        std::string_view const text = texts_[static_cast<std::size_t>(id)];
        auto const h = hash_bytes(text);
        auto& entry = entries_[slot(text, h)];
        if (entry.id >= 0) return entry.id;
        entry = {static_cast<std::uint32_t>(h), id};
        return -1;
    }

private:
    struct entry {
        std::uint32_t hash = 0; // its low half; the high half chose the slot
        std::int32_t id = -1;
    };

    std::size_t slot(std::string_view text, std::uint64_t h) const noexcept
    {
        std::size_t i = h >> shift_;
        while (entries_[i].id >= 0 && (entries_[i].hash != static_cast<std::uint32_t>(h) ||
                                       texts_[static_cast<std::size_t>(entries_[i].id)] != text)) {
            i = (i + 1) & (entries_.size() - 1);
        }
        return i;
    }

    std::vector<std::string> const& texts_;
    unsigned shift_;
    std::vector<entry> entries_;
};

} // namespace plait
