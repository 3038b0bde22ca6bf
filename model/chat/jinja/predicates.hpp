#pragma once

#include <plait/model/chat/jinja/function.hpp>
#include <string_view>

namespace plait::jinja {

/// subject is name(given): what jinja2 calls a test.
using predicate_function = bool (*)(interpreter&, value const& subject, arguments const& given);

/// The test of that name, or null. All of jinja2's are there.
predicate_function find_predicate(std::string_view name);

} // namespace plait::jinja
