#pragma once

#include <plait/model/text/byte_trie.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plait {

/// SentencePiece's unigram model (Kudo 2018): of all ways to write a text as tokens, the one with the greatest sum of
/// scores. A character that is no token counts as an unknown token, ten below the least score. Immutable, so any number
/// of threads may encode at once.
class unigram {
public:
    struct token {
        std::string_view text; ///< UTF-8, not empty
        std::int32_t id;
        double score;
    };
    struct settings {
        double least = 0;                      ///< of the scores that are compared with the unknown token's
        std::int32_t unknown = -1;             ///< the unknown token, or -1: left out
        std::array<std::int32_t, 256> bytes{}; ///< byte tokens, or -1; all must be there to be used
        bool single_precision = false;         ///< see unigram_model
    };
    /// The working memory of encode; keep one a thread to save allocations.
    class scratch;

    unigram(std::vector<token> const& tokens, settings how);

    /// Appends the tokens of `piece`, which must be UTF-8 and shorter than 2^31 bytes, to `out`; neighbouring unknown
    /// characters are one. Takes time linear in the length of the piece times that of the longest token.
    void encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const;

private:
    static constexpr std::int32_t none = -2, unknown_character = -1;

    byte_trie trie_;
    std::array<byte_trie::index, 256> first_{};
    std::vector<std::int32_t> token_; // by node: into ids_ and scores_, or -1
    std::vector<std::int32_t> ids_;
    std::vector<double> scores_;
    settings how_;
    bool has_bytes_ = false;
};

class unigram::scratch {
public:
    /// How many bytes of tokens were compared so far: what time is spent on.
    std::uint64_t steps() const noexcept { return steps_; }

private:
    friend class unigram;
    // The best way to a place: the token that ends there, and where it begins.
    struct node {
        double score;
        std::int32_t token;
        std::int32_t begin;
    };
    std::vector<node> nodes_;
    std::vector<std::pair<std::int32_t, std::int32_t>> path_; // end and token of each part, last first
    std::uint64_t steps_ = 0;
};

} // namespace plait
