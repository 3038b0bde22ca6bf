#pragma once

#include <plait/model/text/tokenizer_description.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait {

class gguf_file;

/// A tokenizer as a GGUF file holds it. Not checked: describe() and the constructor of tokenizer do that.
struct vocabulary {
    /// The algorithm: "gpt2" is byte-level BPE, "llama" SentencePiece's BPE, "t5" SentencePiece's unigram model,
    /// "gemma4" BPE of characters with merges; "gpt1" is plait's own name for that of GPT-1.
    std::string model;
    std::string pre;                      ///< for "gpt2" the rule of pre_tokenizer; empty is "default"
    std::string architecture;             ///< of the model that the file holds
    std::vector<std::string> tokens;      ///< by id, in the byte alphabet of GPT-2 where the model is "gpt2"
    std::vector<std::int32_t> types;      ///< token_type by id; empty: all normal
    std::vector<float> scores;            ///< by id; of "llama" and "t5"
    std::vector<std::string> merges;      ///< "left right", best first
    std::string charsmap;                 ///< the normaliser's table; of "t5"
    std::optional<std::int64_t> bos, eos; ///< ids; also below
    std::optional<std::int64_t> end_of_turn, end_of_message, unknown, padding;
    std::optional<bool> add_bos, add_eos; ///< empty: what is usual for `model` and `pre`
    std::optional<bool> add_space_prefix, remove_extra_spaces;
    // What only plait's own keys can say, which other programs pass over (tokenizer.plait.*):
    std::optional<std::vector<std::int32_t>> before, after; ///< a text, instead of bos and eos
    /// Of "llama", where add_space_prefix: "first" puts the space in front of the first part of a text alone, "always"
    /// of every part; neither where there is one already. Empty: of every part, whatever it begins with.
    std::string space_prefix;
    bool single_precision = false;   ///< of "t5": unigram_model::single_precision
    bool normalized_symbols = false; ///< of "llama": user-defined tokens are found behind the space in front of a text
};

/// The `tokenizer.ggml.*` entries of a file. Errors: errc::bad_file where one is missing or of the wrong type.
vocabulary read_vocabulary(gguf_file const& file);

/// What a tokenizer makes of it; for "llama" and "t5" as llama.cpp does. Errors, naming the field: errc::unsupported
/// for a model or pre that is not known; errc::bad_file where lengths differ, a type is unknown, a special id is not in
/// the vocabulary, or a merge is not two pieces.
tokenizer_description describe(vocabulary const& source);

} // namespace plait
