#pragma once

#include <plait/model/files/gguf.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// The metadata of a GGUF file that is to be written. Keys keep the order in which they were first set.
class gguf_metadata {
public:
    struct entry {
        std::string key;
        std::uint32_t type = 0;       ///< a gguf_type
        std::vector<std::byte> value; ///< what follows the type
    };
    std::vector<entry> entries;

    /// Sets a key, in place where it exists.
    void set_raw(std::string_view key, std::uint32_t type, std::vector<std::byte> value);
    void set(std::string_view key, std::uint32_t value);
    void set(std::string_view key, std::uint64_t value);
    void set(std::string_view key, std::int32_t value);
    void set(std::string_view key, float value);
    void set(std::string_view key, double value);
    void set(std::string_view key, bool value);
    void set(std::string_view key, std::string_view value);
    void set(std::string_view key, char const* value) { set(key, std::string_view(value)); }
    void set(std::string_view key, std::span<std::string const> values);
    void set(std::string_view key, std::span<std::int32_t const> values);
    void set(std::string_view key, std::span<std::uint32_t const> values);
    void set(std::string_view key, std::span<float const> values);
    void set(std::string_view key, std::span<std::byte const> values); ///< an array of u8
    /// As it lies in another file.
    void copy(gguf_entry const& from);
    void erase(std::string_view key);
    bool has(std::string_view key) const noexcept;

    /// Appends all entries as they lie in a file.
    void append_to(std::vector<std::byte>& out) const;
};

/// Appends a GGUF string: its length in 64 bits, then its bytes.
void append_gguf_string(std::vector<std::byte>& out, std::string_view value);

} // namespace plait
