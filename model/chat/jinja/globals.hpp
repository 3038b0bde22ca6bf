#pragma once

#include <plait/model/chat/jinja/function.hpp>
#include <string_view>

namespace plait::jinja {

/// The function that every template sees under `name` (`range`, `dict`, `namespace`, `raise_exception`,
/// `strftime_now`), or null.
std::shared_ptr<function const> find_global(std::string_view name);

} // namespace plait::jinja
