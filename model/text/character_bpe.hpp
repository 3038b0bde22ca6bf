#pragma once

#include <plait/model/text/bpe.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plait {

/// Byte-pair encoding that starts from characters: SentencePiece's, and Hugging Face's without ByteLevel. A character
/// without a token is written with byte tokens where there are such, else as the unknown token, else left out.
/// Immutable, so any number of threads may encode at once.
class character_bpe {
public:
    /// The symbol of a character that is no token by itself; a merge may still take it.
    static constexpr std::int32_t bare(char32_t c) noexcept { return -2 - static_cast<std::int32_t>(c); }

    struct table {
        std::unordered_map<char32_t, std::int32_t> characters; ///< tokens of single characters
        std::string end_of_word;                               ///< see bpe_model
        std::unordered_map<char32_t, std::int32_t> last;       ///< tokens of a character and end_of_word
        std::array<std::int32_t, 256> bytes{};                 ///< byte tokens, or -1
        std::int32_t unknown = -1;                             ///< the unknown token, or -1
        bool fuse_unknown = false;                             ///< neighbouring unknown characters are one token
        bool spell_after = false; ///< bare characters are joined first and written out afterwards (SentencePiece)
        std::vector<bpe::ranked_merge> merges;
    };

    explicit character_bpe(table source);

    /// Appends the tokens of `piece`, which must be UTF-8, to `out`. Takes O(n log n) for n bytes.
    void encode(std::string_view piece, std::vector<std::int32_t>& out, bpe::scratch& memory) const;

private:
    std::int32_t find(char32_t c, bool last) const noexcept;
    bool append_bytes(std::string_view character, std::vector<std::int32_t>& out) const;
    void append_unknown(bool after_unknown, std::vector<std::int32_t>& out) const;

    table table_;
    std::array<std::int32_t, 128> ascii_{};
    bpe joiner_;
};

} // namespace plait
