#pragma once

#include <plait/model/text/tokenizer_description.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace plait {

/// The tokenizer of a model in the layout of the Hugging Face hub: a directory with `tokenizer.json`, or with a
/// SentencePiece model (`tokenizer.model`, `spiece.model`; `ice_text.model` is ChatGLM-6B's), or with `vocab.json` and
/// `merges.txt` (GPT-2's and GPT-1's). `tokenizer_config.json`, `special_tokens_map.json` and `generation_config.json`
/// beside it name the special tokens and say whether they are added.
/// Errors: errc::not_found where there is no such file, errc::io, and those of the readers below, with the file's name.
tokenizer_description read_tokenizer(std::filesystem::path const& directory);

/// The content of a `tokenizer.json` (Hugging Face's tokenizers library, version "1.0").
///
/// Models: BPE, Unigram. Normalizers: Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace,
/// Precompiled, BertNormalizer. Pre-tokenizers: Sequence, ByteLevel (as the last that changes the text), Split,
/// Metaspace, Digits, Whitespace, WhitespaceSplit, Punctuation, CharDelimiterSplit, BertPreTokenizer. Decoders:
/// Sequence, ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, BPEDecoder. Post-processors: Sequence,
/// ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing. Truncation and padding are left to the caller.
///
/// Errors, naming the field: errc::bad_file where it is not JSON, nests deeper than 64, lacks a field or has one of the
/// wrong type; errc::unsupported for other kinds, by name, and for dropout and continuing_subword_prefix.
tokenizer_description parse_tokenizer_json(std::string_view json, std::string const& source = "tokenizer.json");

/// Adds tokens that stand for nothing, so that there are `size` of them: embeddings often have more rows than the
/// tokenizer has tokens. Does nothing where it has as many or more.
void pad_vocabulary(tokenizer_description& to, std::size_t size);

} // namespace plait
