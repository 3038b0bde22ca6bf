#pragma once

#include <plait/model/files/model_files.hpp>
#include <plait/model/text/tokenizer_description.hpp>

namespace plait {

/// The tokenizer of a model, from its GGUF file or its Hugging Face folder. Errors: those of read_vocabulary and
/// describe, or of read_tokenizer of a directory.
tokenizer_description read_tokenizer(model_files const& files);

} // namespace plait
