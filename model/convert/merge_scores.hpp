#pragma once

#include <plait/model/text/tokenizer_description.hpp>

#include <string>
#include <vector>

namespace plait {

/// The scores by which SentencePiece's BPE makes of the tokens of `from` what the merges of `model` make of them: 0 for
/// the first token made, -1 for the next one and so on, and less for characters, as SentencePiece's own trainer numbers
/// them. SentencePiece joins any two tokens that make a third, so all of those must be merges, and those that make the
/// same token must follow each other. Errors: errc::unsupported, after `source`, where they don't.
std::vector<float> merge_scores(tokenizer_description const& from, bpe_model const& model, std::string const& source);

} // namespace plait
