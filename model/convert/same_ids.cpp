#include <plait/model/convert/same_ids.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>

#include <string_view>

namespace plait {
namespace {

/// Tokens of a text that is made of several.
constexpr std::size_t together = 24;

constexpr std::string_view lines[] = {
    "",
    " ",
    "Hello world",
    " two  spaces,\ttabs\nand   more \n\n lines ",
    "I'm sure they've said: \"3.14 != 2,718,281\" (or -1e10, 0x1F)",
    "Straße naïve café déjà-vu привет мир Ελληνικά שלום مرحبا नमस्ते ไทย 你好世界 こんにちは 한국어",
    "👍🏽 👨‍👩‍👧 🇨🇭 ❤️ ½ ﬁ ① Å",
    "int main() { return a[i] += 1; } // done",
};

class comparison {
public:
    comparison(tokenizer_description const& before, tokenizer_description const& after, std::string const& source)
        : before_(before)
        , after_(after)
        , source_(source)
    {
    }

    void compare(std::string_view text) const
    {
        if (!is_utf8(text)) return;
        for (bool const parses : {false, true}) {
            auto const ids = before_.encode(text, {.add_special = true, .parse_special = parses});
            auto const others = after_.encode(text, {.add_special = true, .parse_special = parses});
            if (ids == others && before_.decode(ids) == after_.decode(ids)) continue;
            throw error(errc::unsupported,
                        source_ + ": tokenizer: a GGUF file would make other tokens of " + quote(text));
        }
    }

    void compare_tokens() const
    {
        std::string joined;
        for (std::size_t i = 0; i < before_.size(); ++i) {
            auto const piece = before_.piece(static_cast<std::int32_t>(i));
            compare(piece);
            joined += piece;
            if (i % together != together - 1) continue;
            compare(joined);
            joined.clear();
        }
    }

    void compare_ends() const
    {
        for (auto const id : before_.end_of_generation())
            if (!after_.ends_generation(id))
                throw error(errc::unsupported, source_ + ": tokenizer: in a GGUF file " + quote(before_.piece(id)) +
                                                   " would not end an answer");
    }

private:
    tokenizer before_, after_;
    std::string const& source_;
};

} // namespace

void prove_same_ids(tokenizer_description const& before, tokenizer_description const& after, std::string const& source)
{
    comparison const all(before, after, source);
    for (auto const line : lines)
        all.compare(line);
    all.compare_tokens();
    for (auto const& token : before.added)
        all.compare("word" + token.text + " word " + token.text + "\n" + token.text);
    all.compare_ends();
}

} // namespace plait
