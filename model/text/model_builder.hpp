#pragma once

#include <plait/model/text/bpe.hpp>
#include <plait/model/text/character_bpe.hpp>
#include <plait/model/text/token_index.hpp>
#include <plait/model/text/tokenizer_description.hpp>
#include <plait/model/text/unigram.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace plait {

/// The algorithm that encodes one piece, ready to run. Immutable.
struct token_model {
    struct scratch {
        bpe::scratch merges;
        unigram::scratch lattice;
        std::uint64_t steps() const noexcept { return merges.steps() + lattice.steps(); }
    };

    std::variant<bpe, character_bpe, unigram> algorithm;
    /// No token goes from before a U+2581 to behind it, so text may be cut there without changing the result.
    bool marks_begin_words = false;

    void encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const;
};

/// Builds the model of `source`. `types` are those that count, `index` has every token that is not empty, `bytes` the
/// tokens of bytes or -1. Errors as the constructor of tokenizer.
token_model make_token_model(tokenizer_description const& source, std::vector<token_type> const& types,
                             token_index const& index, std::array<std::int32_t, 256> const& bytes);

/// The byte of a token `<0xNN>`.
std::optional<unsigned char> byte_token(std::string_view text) noexcept;

} // namespace plait
