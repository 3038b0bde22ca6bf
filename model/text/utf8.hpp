#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

/// What stands at the start of some bytes, by the table of well-formed UTF-8 (The Unicode Standard, table 3-7).
struct utf8_unit {
    enum class kind : std::uint8_t {
        scalar,     ///< one well-formed scalar value of `length` bytes
        ill_formed, ///< a maximal subpart of `length` bytes that can't be continued to a scalar value
        truncated,  ///< `length` bytes, all there are, that more bytes could still complete
    };
    char32_t value = 0; ///< of a scalar, otherwise 0
    std::uint8_t length = 0;
    kind what = kind::scalar;
};

/// Reads the first unit of `bytes`, which must not be empty.
utf8_unit first_utf8(std::string_view bytes) noexcept;

/// The length of the longest prefix of `bytes` that is well-formed UTF-8.
std::size_t valid_utf8_prefix(std::string_view bytes) noexcept;

inline bool is_utf8(std::string_view bytes) noexcept
{
    return valid_utf8_prefix(bytes) == bytes.size();
}

/// Appends `scalar`, a Unicode scalar value, to `out`.
void append_utf8(std::string& out, char32_t scalar);

/// `bytes` with U+FFFD in place of each maximal subpart of an ill-formed sequence: the practice that the Unicode
/// Standard recommends (section 3.9), what WHATWG decoders do, and Python's `bytes.decode("utf-8", "replace")`.
std::string replace_invalid_utf8(std::string_view bytes);

/// Turns a stream of bytes, cut anywhere, into well-formed UTF-8: the concatenated output is exactly
/// replace_invalid_utf8 of the concatenated input. Holds back at most three bytes.
class utf8_decoder {
public:
    /// Takes `bytes` and appends the text that is now certain to `out`. Returns the length of `out` right after the
    /// sequence that was held back at the call came to its end, or the length on entry where nothing was held.
    std::size_t push(std::string_view bytes, std::string& out);

    /// Ends the stream: an incomplete sequence becomes U+FFFD.
    void finish(std::string& out);

    /// True while the bytes so far end inside a sequence.
    bool holds() const noexcept { return count_ != 0; }

private:
    std::array<char, 4> held_{};
    std::uint8_t count_ = 0;
};

} // namespace plait
