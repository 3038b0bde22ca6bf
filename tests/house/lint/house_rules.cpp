#include <plait/tests/house/lint/house_rules.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

namespace plait::house {

namespace {

constexpr std::array<std::string_view, 8> floors = {"actors", "streams", "kernels", "kv",
                                                    "model",  "engine",  "apps",    "tests"};
constexpr int longest_header = 400;
constexpr int longest_source = 900;

bool one_of(std::string_view text, std::initializer_list<std::string_view> words)
{
    return std::find(words.begin(), words.end(), text) != words.end();
}

std::string_view folder_of(std::string_view path)
{
    return path.substr(0, path.find('/'));
}

// 1 for the lowest floor, 0 for a folder that is none.
std::size_t floor_number(std::string_view folder)
{
    auto found = std::find(floors.begin(), floors.end(), folder);
    return found == floors.end() ? 0 : static_cast<std::size_t>(found - floors.begin()) + 1;
}

class checker {
public:
    explicit checker(source const& file)
        : file_(file)
        , path_(file.path())
        , is_header_(path_.ends_with(".hpp"))
        , is_test_(path_.ends_with(".test.cpp") || path_.ends_with(".fuzz.cpp") || folder_of(path_) == "tests")
        , is_library_(floor_number(folder_of(path_)) >= 1 && floor_number(folder_of(path_)) <= 6 && !is_test_)
    {
    }

    std::vector<finding> run()
    {
        check_includes();
        check_length();
        check_header();
        check_runtime();
        return std::move(found_);
    }

private:
    void report(int line, char const* rule, std::string message)
    {
        found_.push_back({.path = std::string(path_), .line = line, .rule = rule, .message = std::move(message)});
    }

    void check_includes()
    {
        for (auto const& directive : file_.directives()) {
            if (!directive.text.starts_with("include")) {
                continue;
            }
            auto open = directive.text.find_first_of("<\"");
            if (open == std::string::npos) {
                report(directive.line, "floor", "an include that is not a plain name");
                continue;
            }
            // The examples also build as a project of their own, where nothing but an installed plait is below plait/.
            if (directive.text[open] == '"' && path_.starts_with("apps/examples/")) {
                continue;
            }
            if (directive.text[open] == '"') {
                report(directive.line, "floor", "included in quotes: write <plait/floor/name.hpp>");
                continue;
            }
            auto name = std::string_view(directive.text).substr(open + 1);
            name = name.substr(0, name.find('>'));
            if (name.starts_with("plait/")) {
                check_plait_include(directive.line, name.substr(6));
            } else if ((name == "asio.hpp" || name.starts_with("asio/")) && is_library_ && is_header_ &&
                       path_ != "actors/asio.hpp" && !path_.starts_with("actors/asio/")) {
                report(directive.line, "asio-bridge", "Asio in a header outside actors/asio/");
            }
        }
    }

    void check_plait_include(int line, std::string_view name)
    {
        auto const here = floor_number(folder_of(path_));
        auto const there = floor_number(folder_of(name));
        if (there == 0) {
            report(line, "floor", "includes plait/" + std::string(name) + ", which is on no floor");
        } else if (is_test_ && name.starts_with("tests/support/")) {
            return; // what all tests share
        } else if (here != 0 && there > here) {
            report(line, "floor",
                   std::string(folder_of(path_)) + " includes " + std::string(folder_of(name)) + ", a higher floor");
        }
    }

    void check_length()
    {
        int const most = is_header_ ? longest_header : longest_source;
        if (file_.lines() > most) {
            report(most, "length",
                   std::to_string(file_.lines()) + " lines, more than " + std::to_string(most) +
                       ": split it by concept");
        }
    }

    void check_header()
    {
        if (!is_header_) {
            return;
        }
        if (file_.directives().empty() || file_.directives().front().text != "pragma once") {
            report(1, "pragma-once", "a header begins with #pragma once");
        }
        for (auto const& directive : file_.directives()) {
            if (is_library_ && directive.text.starts_with("define")) {
                report(directive.line, "macro", "a macro in a public header");
            }
        }
        for (std::size_t i = 1; is_library_ && i < file_.size(); ++i) {
            auto const word = file_.text(i);
            // Names that the language or Asio look for.
            bool const expected = one_of(word, {"get_return_object", "get_return_object_on_allocation_failure",
                                                "get_executor", "get_allocator", "get_cancellation_slot"});
            if (word.starts_with("get_") && file_.is_name(i) && !expected && file_.is(i + 1, "(") &&
                (file_.is_name(i - 1) || one_of(file_.text(i - 1), {">", "&", "*"})) &&
                !one_of(file_.text(i - 1), {"return", "co_return", "co_await", "case"}) &&
                file_.function_around(i) == source::none) {
                report(file_.line(i), "accessor", std::string(word) + ": an accessor is called by what it returns");
            }
        }
    }

    bool is_member(std::size_t index) const { return one_of(file_.text(index - 1), {".", "->"}); }

    // Qualified by `std::` (or `::`, or not at all, for what C has).
    bool is_std(std::size_t index) const { return file_.is(index - 1, "::") && file_.is(index - 2, "std"); }
    bool is_global(std::size_t index) const
    {
        return !is_member(index) && (is_std(index) || !file_.is(index - 1, "::") || !file_.is_name(index - 2));
    }
    // A call, not a declaration of a function of that name.
    bool is_call(std::size_t index) const
    {
        return file_.is(index + 1, "(") && !(file_.is_name(index - 1) && !one_of(file_.text(index - 1), {"return"})) &&
               !one_of(file_.text(index - 1), {">", "&", "*"});
    }

    void check_runtime()
    {
        bool const is_source_of_them = path_.starts_with("actors/runtime/") || path_.starts_with("actors/time/");
        // What the bench measures beside plait does without plait.
        if (floor_number(folder_of(path_)) == 0 || path_.starts_with("apps/bench/runtime/peers/")) {
            return;
        }
        for (std::size_t i = 0; i < file_.size(); ++i) {
            auto const word = file_.text(i);
            if (!file_.is_name(i)) {
                continue;
            }
            bool const sleeps =
                (one_of(word, {"sleep_for", "sleep_until"}) && file_.is(i - 1, "::") &&
                 file_.is(i - 2, "this_thread")) ||
                (one_of(word, {"sleep", "usleep", "nanosleep", "clock_nanosleep"}) && is_global(i) && is_call(i));
            if (sleeps && !(is_source_of_them && !is_test_)) {
                report(file_.line(i), "runtime-only",
                       is_test_ ? "a test that sleeps: wait for what it waits for, or use manual_clock"
                                : "sleeps: await the clock of the runtime");
            }
            if (is_test_ || is_source_of_them) {
                continue;
            }
            bool const thread =
                (one_of(word, {"thread", "jthread", "async"}) && is_std(i) && !file_.is(i + 1, "::")) ||
                (one_of(word, {"pthread_create", "thrd_create", "fork", "vfork"}) && is_global(i) && is_call(i));
            bool const clock =
                (word == "now" && file_.is(i - 1, "::") && file_.text(i - 2).ends_with("_clock") &&
                 file_.is(i + 1, "(") && file_.is(i - 3, "::") && file_.is(i - 4, "chrono")) ||
                (one_of(word, {"clock_gettime", "gettimeofday", "time", "clock", "timespec_get", "__rdtsc"}) &&
                 is_global(i) && is_call(i) && (is_std(i) || !one_of(word, {"clock"})));
            bool const randomness =
                (one_of(word, {"random_device", "default_random_engine"}) && is_std(i)) ||
                (one_of(word, {"rand", "srand", "random", "getrandom", "getentropy", "arc4random", "drand48"}) &&
                 is_global(i) && is_call(i));
            if (thread || clock || randomness) {
                report(file_.line(i), "runtime-only",
                       std::string(word) + ": " +
                           (thread  ? "threads come"
                            : clock ? "time comes"
                                    : "randomness comes") +
                           " from the runtime");
            }
        }
    }

    source const& file_;
    std::string_view path_;
    bool is_header_;
    bool is_test_;
    bool is_library_;
    std::vector<finding> found_;
};

} // namespace

std::vector<finding> check_house(source const& file)
{
    return checker(file).run();
}

} // namespace plait::house
