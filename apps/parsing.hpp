#pragma once

#include <plait/apps/parsed_arguments.hpp>
#include <plait/model/model_overrides.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace plait {

/// Strict: the whole text is one number.
template<class T>
std::optional<T> number(std::string_view text)
{
    T value{};
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A whole number from `low` to `high`.
inline CLI::Validator whole(std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max())
{
    auto range = "at least " + std::to_string(low);
    if (high != std::numeric_limits<std::int64_t>::max())
        range = "from " + std::to_string(low) + " to " + std::to_string(high);
    auto check = [=](std::string& text) -> std::string {
        auto const value = number<std::int64_t>(text);
        return value && *value >= low && *value <= high ? std::string() : text + " is not a whole number " + range;
    };
    return CLI::Validator(check, range);
}

/// The file that is to tell what an engine and its devices did (streams/trace_file.hpp).
inline CLI::Option* add_trace_option(CLI::App& app, std::string& file)
{
    return app.add_option("--trace", file, "Writes there what ran when, for Perfetto or chrome://tracing")
        ->type_name("FILE");
}

/// A finite number above `low`.
inline CLI::Validator above(int low)
{
    auto const range = "above " + std::to_string(low);
    auto check = [=](std::string& text) -> std::string {
        auto const value = number<double>(text);
        return value && *value > low && *value <= std::numeric_limits<float>::max()
                   ? std::string()
                   : text + " is not a number " + range;
    };
    return CLI::Validator(check, range);
}

/// The options that say of a model's rotation what its files don't.
inline void add_model_overrides(CLI::App& app, model_overrides& out, std::string const& group)
{
    std::map<std::string, rope_stretch> const kinds{
        {"none", rope_stretch::none}, {"linear", rope_stretch::linear}, {"yarn", rope_stretch::yarn}};
    app.add_option("--rope-base", out.rope_base, "Of the rotation of positions; default: the model's, also below")
        ->type_name("X")
        ->check(above(1))
        ->group(group);
    auto* const scaling = app.add_option("--rope-scaling", out.rope_scaling, "How it is stretched: none, linear, yarn")
                              ->type_name("KIND")
                              ->transform(CLI::CheckedTransformer(kinds).description(""))
                              ->group(group);
    app.add_option("--rope-factor", out.rope_factor, "By how much; of linear and yarn")
        ->type_name("X")
        ->check(above(0))
        ->needs(scaling)
        ->group(group);
    app.add_option("--original-context", out.original_context, "Of yarn: tokens before stretching")
        ->type_name("N")
        ->check(whole(1))
        ->needs(scaling)
        ->group(group);
}

/// Parses the arguments, then lets `check` throw a CLI::ValidationError about them. True where they are settings; else
/// `line` has what to print, complaints as `shown` writes them, and its status is `usage` for those.
template<class Settings, class Check, class Show>
bool parse_into(parsed_arguments<Settings>& line, CLI::App& app, int count, char const* const* arguments, int usage,
                Check const& check, Show const& shown)
{
    try {
        app.parse(count, arguments);
        check();
        return true;
    } catch (CLI::Success const& wanted) {
        std::ostringstream to_output;
        std::ostringstream to_error;
        app.exit(wanted, to_output, to_error);
        line.output = to_output.str();
    } catch (CLI::ParseError const& wrong) {
        line.error = shown(wrong.what()) + " (--help lists the options)";
        line.status = usage;
    }
    return false;
}

} // namespace plait
