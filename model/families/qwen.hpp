#pragma once

#include <plait/model/families/hf_header.hpp>

namespace plait {

/// Gives the layers of a Qwen the windows that its config switches on.
void set_qwen_windows(hf_header const& header, described_model& model);

} // namespace plait
