#pragma once

#include <plait/model/chat/jinja/value.hpp>
#include <string>
#include <string_view>

namespace plait::jinja {

/// How `tojson` writes, with the defaults that Hugging Face's has (json.dumps with ensure_ascii=False).
struct json_style {
    bool ascii_only = false;
    bool sort_keys = false;
    bool pretty = false;     ///< one item a line
    std::string indentation; ///< of each level when pretty
    std::string item_separator = ", ";
    std::string key_separator = ": ";
};

/// Python's json.dumps. Throws `failure` for what JSON does not know, such as an undefined value.
std::string dump_json(budget& b, value const& v, json_style const& style);

/// The value that json.loads gives for `json`. Throws `failure` for what is not JSON in UTF-8 and for nesting beyond
/// the limit. Integers outside 64 bits become floats.
value parse_json(budget& b, std::string_view json);

} // namespace plait::jinja
