#pragma once

#include <plait/model/chat/jinja/value.hpp>
#include <string_view>
#include <vector>

/// What filters and methods share: operations on text that make values, checked against the budget before the memory
/// is taken.
namespace plait::jinja {

/// str.strip, lstrip or rstrip; white space when `chars` is null.
value strip_text(budget& b, value const& subject, std::string_view const* chars, bool left, bool right);

/// str.replace; every occurrence when `limit` is negative. An empty `old` stands between all characters.
value replace_text(budget& b, text const& subject, std::string_view old, text const& replacement, std::int64_t limit);

/// The items with `separator` between them. `strings_only` is str.join, which refuses anything else; otherwise items
/// are converted as by str().
value join_texts(budget& b, text const& separator, sequence const& items, bool strings_only);

/// The text in a field of `width` characters; `align` is '<', '>' or '^' (which centres as str.center does).
value pad_text(budget& b, text const& subject, std::int64_t width, char align, std::string_view fill);

/// A list of parts of a text.
value text_list(budget& b, text const& whole, std::vector<std::string_view> const& parts);

/// dict.keys, values or items.
value members_view(budget& b, mapping const& m, sequence_kind kind);

/// str.islower and isupper.
bool is_lower_text(std::string_view text);
bool is_upper_text(std::string_view text);

} // namespace plait::jinja
