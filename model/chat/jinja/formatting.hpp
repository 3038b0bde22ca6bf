#pragma once

#include <plait/model/chat/jinja/function.hpp>
#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plait::jinja {

/// Python's `format % right`: a tuple gives several values, a mapping serves "%(name)s". Throws where Python raises.
value printf_format(budget& b, std::string_view format, value const& right);

/// Python's `format.format(*positional, **named)` with "{}", "{0}", "{name}", "{name.key[0]}", conversions and
/// specifications of strings and numbers.
value brace_format(budget& b, std::string_view format, arguments const& given);

/// The digits of `d` with `precision` places, as "%.*f" (`type` 'f'), "%.*e" or "%.*g" without a locale.
std::string real_digits(double d, char type, int precision);

} // namespace plait::jinja
