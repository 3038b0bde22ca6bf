#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plait::unicode {

/// Properties of a scalar value, by the tables of utf8proc (Unicode 15 in Debian 12).
bool is_white_space(char32_t c) noexcept;     ///< White_Space
bool is_mark(char32_t c) noexcept;            ///< general category M
bool is_nonspacing_mark(char32_t c) noexcept; ///< general category Mn
bool is_other(char32_t c) noexcept;           ///< general categories Cc, Cf and Co: control, format, private
bool is_word(char32_t c) noexcept;            ///< \w of Unicode Technical Standard 18: letters, marks, digits, `_`, …
bool is_han(char32_t c) noexcept;             ///< the blocks of CJK ideographs that BERT puts spaces around

/// Appends the lower case of `c`, without context, to `out`.
void append_lower(std::string& out, char32_t c);

enum class form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// `text`, which must be UTF-8, in a normalisation form of Unicode Standard Annex 15. Takes O(n log n).
/// Errors: errc::invalid_argument for a text of 512 MiB or more.
std::string to_form(std::string_view text, form how);

/// The length in bytes of the first extended grapheme cluster of `text`, which must be UTF-8 and not empty, up to the
/// first character that starts `limit` bytes in or later.
std::size_t first_grapheme(std::string_view text, std::size_t limit) noexcept;

} // namespace plait::unicode
