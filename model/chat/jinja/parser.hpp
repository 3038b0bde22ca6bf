#pragma once

#include <plait/model/chat/jinja/ast.hpp>
#include <plait/model/chat/jinja/limits.hpp>
#include <string_view>

namespace plait::jinja {

/// Parses a whole template. Throws `failure` and leaves the place it is about in `where`.
block parse(std::string_view source, template_limits const& limits, place& where);

} // namespace plait::jinja
