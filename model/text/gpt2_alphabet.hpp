#pragma once

#include <string>
#include <string_view>

namespace plait {

/// The byte alphabet of GPT-2: printable bytes are themselves, the others U+0100 onwards in order of byte.
/// Appends `bytes`, each byte as the character that stands for it.
void append_gpt2_spelling(std::string_view bytes, std::string& out);

/// Appends the bytes that `text`, which must be UTF-8, spells, or `text` itself where it has a character that is not in
/// the alphabet: such tokens were added by hand.
void append_gpt2_bytes(std::string_view text, std::string& out);

} // namespace plait
