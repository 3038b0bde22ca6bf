#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Python's str over valid UTF-8. Positions are byte offsets unless a name says points.
namespace plait::jinja {

/// Whether `bytes` is well-formed UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF).
bool valid_utf8(std::string_view bytes) noexcept;

/// The number of code points.
std::size_t code_points(std::string_view text) noexcept;

/// Decodes the code point at `at` and moves `at` behind it.
char32_t next_point(std::string_view text, std::size_t& at) noexcept;

/// Appends one code point.
void append_point(std::string& out, char32_t point);

/// The byte offset of the code point number `index`, or the size when the text is shorter.
std::size_t offset_of(std::string_view text, std::size_t index) noexcept;

/// Python's classes of characters.
bool is_space(char32_t c) noexcept;
bool is_alpha(char32_t c) noexcept;
bool is_decimal(char32_t c) noexcept;
bool is_digit(char32_t c) noexcept;
bool is_numeric(char32_t c) noexcept;
bool is_lower(char32_t c) noexcept;
bool is_upper(char32_t c) noexcept;
bool is_title(char32_t c) noexcept;
bool is_printable(char32_t c) noexcept;
bool is_cased(char32_t c) noexcept;

/// str.lower, upper, title, capitalize, swapcase with full case mapping and the final sigma.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);

/// The text without the characters of `chars` at the sides asked for; white space when `chars` is null.
std::string_view strip(std::string_view text, std::string_view const* chars, bool left, bool right);

/// The first (last) occurrence at or after `from`, or npos. Linear in both lengths, whatever the texts.
std::size_t find(std::string_view text, std::string_view part, std::size_t from = 0);
std::size_t find_last(std::string_view text, std::string_view part);

/// The number of occurrences that do not overlap, at most `limit`. `part` is not empty.
std::size_t count(std::string_view text, std::string_view part, std::size_t limit);

/// str.split and rsplit with at most `limit` cuts (unlimited when negative). `separator` is not empty.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, long long limit,
                                    bool from_right);

/// The same at runs of white space, as without a separator.
std::vector<std::string_view> split_space(std::string_view text, long long limit, bool from_right);

/// str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// Appends the text as Python's repr writes it.
void append_quoted(std::string& out, std::string_view text);

/// Appends &, <, >, ' and " as HTML entities.
void append_escaped(std::string& out, std::string_view text);

} // namespace plait::jinja
