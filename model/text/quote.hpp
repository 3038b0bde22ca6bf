#pragma once

#include <string>
#include <string_view>

namespace plait {

/// `text` in single quotes, fit for an error message: control characters, quotes and backslashes become \xNN, and
/// what is past 96 bytes becomes "...". For content of files and requests, which can hold anything.
std::string quote(std::string_view text);

} // namespace plait
