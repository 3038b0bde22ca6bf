#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace plait::jinja {

/// Python's datetime.strftime for a date without a zone, in the C locale. Unknown directives stay as they are.
std::string format_time(std::chrono::sys_seconds time, std::string_view format);

} // namespace plait::jinja
