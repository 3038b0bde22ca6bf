#pragma once

#include <chrono>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/tests/support/paths.hpp>

namespace plait::test {

/// A file that tests/data/scripts/make_template_goldens.py wrote.
inline nlohmann::ordered_json template_golden(std::string const& name)
{
    return nlohmann::ordered_json::parse(std::ifstream(test_data("templates/" + name)));
}

/// The date that the script gave to strftime_now: 2025-03-09 14:05:07.
inline std::chrono::sys_seconds golden_date()
{
    using namespace std::chrono;
    return sys_days(year(2025) / 3 / 9) + hours(14) + minutes(5) + seconds(7);
}

/// What a rendering gave: the text, or the error that took its place.
struct rendering {
    std::string text;
    std::string error;
};

/// Parses and renders; an `errc::template_failed` becomes the error, anything else passes through.
inline rendering render(std::string const& source, render_input const& input, template_limits const& limits = {})
{
    try {
        return {chat_template::parse(source, limits).render(input), {}};
    } catch (plait::error const& e) {
        if (e.condition() != errc::template_failed) throw;
        return {{}, e.what()};
    }
}

} // namespace plait::test
