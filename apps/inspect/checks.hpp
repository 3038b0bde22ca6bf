#pragma once

#include <plait/model/files/model_files.hpp>

#include <string>
#include <vector>

namespace plait::inspecting {

/// What a look at all of a model has found.
struct report {
    std::vector<std::string> checked;  ///< a line for each thing that was looked at
    std::vector<std::string> findings; ///< what is wrong; none: all is well
};

/// Reads the header, the specification, every value of every tensor, the tokenizer and the chat template. What the
/// opening of the files has checked is in order. Throws errc::io where a file can't be read.
report check_all(model_files const& files);

} // namespace plait::inspecting
