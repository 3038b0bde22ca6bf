#pragma once

#include <optional>
#include <plait/model/chat/jinja/value.hpp>
#include <string_view>

namespace plait::jinja {

/// The method, or field of a namespace or loop, that Python's getattr would find under `name`; nothing else of the
/// host can be reached.
std::optional<value> method(budget& b, value const& subject, std::string_view name);

/// Whether Python has an attribute of this name that the sandbox keeps away, so that the key under it is hidden too:
/// the methods that change a dictionary.
bool hides(value const& subject, std::string_view name);

} // namespace plait::jinja
