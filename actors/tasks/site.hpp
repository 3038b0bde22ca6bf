#pragma once

namespace plait {

/// A place in the source, for messages that must name where something was awaited or sent.
struct site {
    char const* file = "";
    unsigned line = 0;
};

/// The place of the call, also when it is the default argument of another function: `void f(site where = here())`.
constexpr site here(char const* file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept
{
    return {file, line};
}

} // namespace plait
