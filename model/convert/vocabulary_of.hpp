#pragma once

#include <plait/model/files/gguf_metadata.hpp>
#include <plait/model/text/tokenizer_description.hpp>
#include <plait/model/text/vocabulary.hpp>

#include <cstdint>
#include <string>

namespace plait {

/// A tokenizer as a GGUF file says it, for `tokens` tokens; what is missing to them is padding. Byte-level BPE whose
/// rule of cutting has a name, and no more than one token before and after a text, can be said; a normaliser to NFC is
/// left out, as in every GGUF file. Errors: errc::unsupported, after `source`, for what can't be said; errc::bad_file
/// where there are more than `tokens` tokens.
vocabulary vocabulary_of(tokenizer_description const& from, std::int64_t tokens, std::string const& source);

/// Sets the `tokenizer.ggml.*` keys.
void set_vocabulary(gguf_metadata& keys, vocabulary const& what);

} // namespace plait
