#pragma once

#include <plait/model/files/gguf_metadata.hpp>
#include <plait/model/text/tokenizer_description.hpp>
#include <plait/model/text/vocabulary.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

/// A tokenizer as a GGUF file says it, for `tokens` tokens of a model of the GGUF architecture `architecture`; what is
/// missing to them is padding. What can be said:
///
/// - byte-level BPE whose rule of cutting has a name; a normaliser to NFC is left out, as in every GGUF file;
/// - BPE of characters whose unknown ones are bytes, by SentencePiece's scores or by merges that have such
///   (merge_scores), with spaces written as U+2581 and perhaps one in front;
/// - SentencePiece's unigram model without symbols of its own and without bytes.
///
/// What only plait reads is in keys of its own: several tokens before or after a text, a space in front of some parts
/// of a text, symbols that are found behind that space, sums in F32. Errors: errc::unsupported, after `source`, for
/// what can't be said, also where a text would have other tokens (prove_same_ids); errc::bad_file where there are more
/// than `tokens` tokens.
vocabulary vocabulary_of(tokenizer_description const& from, std::int64_t tokens, std::string_view architecture,
                         std::string const& source);

/// Sets the `tokenizer.*` keys.
void set_vocabulary(gguf_metadata& keys, vocabulary const& what);

} // namespace plait
