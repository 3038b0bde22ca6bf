#pragma once

#include <cstdint>
#include <optional>
#include <plait/model/chat/jinja/value.hpp>
#include <string_view>

namespace plait::jinja {

/// Python's int(text, base) and float(text); nothing where they raise ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_real(std::string_view text);

/// Python's round(v, places): half to even on the exact value, integers stay integers.
value rounded(value const& v, std::int64_t places);

/// Python's int(d). Throws `failure` where the result leaves 64 bits; nothing for a NaN.
std::optional<std::int64_t> truncated(double d);

} // namespace plait::jinja
