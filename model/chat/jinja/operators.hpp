#pragma once

#include <optional>
#include <plait/model/chat/jinja/ast.hpp>
#include <plait/model/chat/jinja/value.hpp>

/// Python's operators on values. Each throws `failure` where Python raises.
namespace plait::jinja {

/// +, -, *, /, //, %, ** with Python's types and signs.
value arithmetic(budget& b, operator_kind op, value const& left, value const& right);

/// -v and +v.
value negated(value const& v);
value positive(value const& v);

/// ==, !=, <, <=, >, >=, in, not in.
bool compare(budget& b, operator_kind op, value const& left, value const& right);

/// left < right, for sorting.
bool less(budget& b, value const& left, value const& right);

/// item in container.
bool contains(budget& b, value const& container, value const& item);

/// subject[key], which reaches methods where there is no such key; undefined when there is neither.
value subscript(budget& b, value const& subject, value const& key);

/// subject.name: a method first, then the key; undefined when there is neither.
value attribute(budget& b, value const& subject, std::string const& name);

/// subject[start:stop:step] of a string, list, tuple or range; a part left out is null.
value slice(budget& b, value const& subject, value const* start, value const* stop, value const* step);

/// The items that iterating over `v` visits: characters of a string, keys of a dictionary, nothing for undefined.
std::shared_ptr<sequence const> iterate(budget& b, value const& v);

/// Python's len(v).
std::int64_t length(value const& v);

/// Whether `v` may be the key of a dictionary.
bool hashable(budget& b, value const& v);

} // namespace plait::jinja
