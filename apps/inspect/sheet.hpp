#pragma once

#include <plait/model/files/model_files.hpp>
#include <plait/model/model_overrides.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/tokenizer_description.hpp>

#include <string>

namespace plait::inspecting {

// What a model's files say, as text for people. Whatever comes from the files is shown as chat::printable_line shows
// it.

/// The specification: a layer group's norm placement, then its attention, rotation and feed-forward network, a line
/// each; or why plait does not run the model. Errors: as of apply(), for overrides.
std::string show_model(model_files const& files, model_overrides const& overrides = {});
/// A line for each tensor with its type, its shape and its bytes, or with `all` false one for each type.
std::string show_tensors(model_files const& files, bool all);
/// The metadata of a GGUF file or the settings of a config.json, a line each; long values are cut short.
std::string show_metadata(model_files const& files);
/// The tokenizer's kind and its special tokens, and whether there is a chat template; or why there is none.
std::string show_text(model_files const& files);

} // namespace plait::inspecting
