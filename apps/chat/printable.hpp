#pragma once

#include <string>
#include <string_view>

namespace plait::chat {

/// `text` as a terminal may be given it: what could move the cursor, change the colours or reorder the line is shown
/// instead of done. Line feeds and tabs stay; the other control characters, U+0080 to U+009F among them, become `\x1b`
/// and the like, and the characters that override the direction of writing become `\u{202e}` and the like. Bytes that
/// are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);

/// The same, on one line: line feeds are shown too.
std::string printable_line(std::string_view text);

} // namespace plait::chat
