#pragma once

#include <plait/model/text/tokenizer_description.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// A SentencePiece model file (`tokenizer.model`, `spiece.model`, `ice_text.model`): the fields of sentencepiece's
/// sentencepiece_model.proto that encoding depends on.
struct sentencepiece_model {
    enum class algorithm : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };
    struct piece {
        std::string text;
        float score = 0;
        token_type type = token_type::normal;
    };

    std::vector<piece> pieces;
    algorithm how = algorithm::unigram;
    bool byte_fallback = false;
    bool space_is_suffix = false;
    std::int64_t unknown = 0, begin = 1, end = 2, padding = -1; ///< ids; below 0: none
    std::string charsmap;                                       ///< the table of the normaliser; empty: none
    bool add_prefix = true, remove_extra_spaces = true, escape_spaces = true;

    /// Reads the bytes of a file, called `source` in errors. Takes time and memory linear in their number.
    /// Errors: errc::bad_file where they are not such a message, a piece is not UTF-8 or has a type that is not known;
    /// errc::unsupported for a denormaliser and for the algorithms `word` and `character`.
    static sentencepiece_model parse(std::string_view bytes, std::string const& source);
};

/// What a tokenizer makes of it, as the sentencepiece library encodes: control pieces are not found in a text. `source`
/// names the file in errors. Errors: errc::bad_file where an id is not in the vocabulary or the charsmap is malformed.
tokenizer_description describe(sentencepiece_model const& model, std::string const& source);

} // namespace plait
