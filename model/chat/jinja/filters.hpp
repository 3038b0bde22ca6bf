#pragma once

#include <plait/model/chat/jinja/function.hpp>
#include <string_view>

namespace plait::jinja {

/// subject | name(given).
using filter_function = value (*)(interpreter&, value const& subject, arguments const& given);

/// The filter of that name, or null. All of jinja2's are there but `pprint`, `random`, `striptags`, `urlize`,
/// `wordwrap` and `xmlattr`; `tojson` is the one that Hugging Face defines.
filter_function find_filter(std::string_view name);

} // namespace plait::jinja
