#pragma once

#include <cstdint>
#include <plait/model/chat/jinja/place.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plait::jinja {

enum class token_kind : std::uint8_t {
    data,           ///< text between tags, white space control applied
    block_begin,    ///< {%
    block_end,      ///< %}
    variable_begin, ///< {{
    variable_end,   ///< }}
    name,
    string, ///< unescaped
    integer,
    real,
    operation, ///< an operator or a bracket; the text says which
    end,
};

struct token {
    token_kind kind;
    place where;
    std::string text; ///< the name, the operator, the string's or data's value, the digits of a number

    bool is(token_kind k) const noexcept { return kind == k; }
    bool is(token_kind k, std::string_view t) const noexcept { return kind == k && text == t; }
};

/// Cuts a template into tokens as jinja2 does with `trim_blocks` and `lstrip_blocks`: comments are gone, `-` and `+`
/// have been applied, `raw` blocks are data. `source` is valid UTF-8. Throws `failure` and leaves the place reached in
/// `where`.
std::vector<token> tokenize(std::string_view source, place& where);

} // namespace plait::jinja
