#pragma once

#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>

#include <string>
#include <string_view>

namespace plait::test {

/// `bytes` in the byte alphabet of GPT-2: printable bytes are themselves, the others U+0100 onwards.
inline std::string spell(std::string_view bytes)
{
    std::string out;
    for (char const c : bytes) {
        auto const b = static_cast<unsigned char>(c);
        auto const printable = [](unsigned v) { return (v >= 0x21 && v <= 0x7E) || (v >= 0xA1 && v != 0xAD); };
        char32_t scalar = b;
        if (!printable(b)) {
            scalar = 0x100;
            for (unsigned v = 0; v < b; ++v)
                scalar += printable(v) ? 0 : 1;
        }
        append_utf8(out, scalar);
    }
    return out;
}

/// A small byte-level vocabulary: the 256 bytes (the token of byte b is b), then some merges, then special tokens.
class vocabulary_builder {
public:
    explicit vocabulary_builder(std::string_view pre = "gpt-2")
    {
        v_.model = "gpt2";
        v_.pre = pre;
        for (int b = 0; b < 256; ++b)
            add(spell(std::string(1, static_cast<char>(b))), token_type::normal);
    }

    /// Adds a token as it stands in the file and returns its id.
    std::int32_t add(std::string text, token_type type)
    {
        v_.tokens.push_back(std::move(text));
        v_.types.push_back(static_cast<std::int32_t>(type));
        return static_cast<std::int32_t>(v_.tokens.size()) - 1;
    }

    /// Adds the merge of two pieces, given as bytes, and the token that it makes; returns its id.
    std::int32_t merge(std::string_view left, std::string_view right)
    {
        v_.merges.push_back(spell(left) + " " + spell(right));
        return add(spell(left) + spell(right), token_type::normal);
    }

    vocabulary& value() noexcept { return v_; }

private:
    vocabulary v_;
};

/// Merges for a few words and characters, `<|start|>` and `<|im_end|>` as control tokens, "<tool>" and two spaces as
/// user-defined ones.
inline vocabulary small_vocabulary()
{
    vocabulary_builder b;
    b.merge("h", "e");
    b.merge("l", "l");
    b.merge("he", "ll");
    b.merge("hell", "o");
    b.merge(" ", "w");
    b.merge("o", "r");
    b.merge("a", "a");
    b.merge("aa", "aa");
    b.merge("\xE4", "\xBD"); // two bytes of three
    b.merge("\xF0", "\x9F"); // the start of most emoji
    b.merge("\x80", "!");    // the end of one character and the next
    b.value().bos = b.add("<|start|>", token_type::control);
    b.value().eos = b.add("<|im_end|>", token_type::control);
    b.add("<tool>", token_type::user_defined);
    b.add("  ", token_type::user_defined);
    return b.value();
}

} // namespace plait::test
