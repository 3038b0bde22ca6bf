#pragma once

#include <plait/model/text/tokenizer_description.hpp>

#include <string>

namespace plait {

/// Proves that two descriptions of one tokenizer mean the same: every token's text, tokens' texts one behind the other,
/// added tokens between words, and some lines of several scripts have the same ids and become the same text, and what
/// ends an answer ends it still. Errors: errc::unsupported, quoting the text after `source`; those of tokenizer.
void prove_same_ids(tokenizer_description const& before, tokenizer_description const& after, std::string const& source);

} // namespace plait
