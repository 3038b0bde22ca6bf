#pragma once

#include <plait/actors/error.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace plait::test {

/// What a call threw.
struct failure {
    std::optional<errc> code; ///< none: nothing
    std::string text;
};

template<class F>
failure failure_of(F&& f)
{
    try {
        f();
    } catch (error const& thrown) {
        return {thrown.condition(), thrown.what()};
    }
    return {};
}

/// Checks that `f` throws an error with `code` whose text has each of `parts`.
template<class F>
void check_failure(F&& f, errc code, std::initializer_list<char const*> parts)
{
    failure const got = failure_of(f);
    CAPTURE(got.text);
    REQUIRE(got.code.has_value());
    CHECK(*got.code == code);
    for (char const* part : parts) {
        CAPTURE(std::string(part));
        CHECK(got.text.find(part) != std::string::npos);
    }
}

} // namespace plait::test
