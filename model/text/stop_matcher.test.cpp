#include <plait/model/text/stop_matcher.hpp>

#include <plait/actors/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace plait;

namespace {

struct outcome {
    std::string text;
    std::optional<std::size_t> stop;
    bool operator==(outcome const&) const = default;
};

outcome run(std::vector<std::string> const& stops, std::vector<std::string> const& parts)
{
    stop_matcher m(stops);
    outcome result;
    for (auto const& part : parts)
        m.push(part, result.text);
    m.finish(result.text);
    result.stop = m.matched();
    return result;
}

/// The definition: of the occurrences that end earliest, the longest.
outcome by_definition(std::vector<std::string> const& stops, std::string const& text)
{
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < stops.size(); ++i) {
            if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
            if (!best || stops[i].size() > stops[*best].size()) best = i;
        }
        if (best) return {text.substr(0, end - stops[*best].size()), best};
    }
    return {text, std::nullopt};
}

} // namespace

TEST_CASE("a stop string is found across parts and never shown")
{
    CHECK(run({"STOP"}, {"one ST", "OP two"}) == outcome{"one ", 0});
    CHECK(run({"STOP"}, {"S", "T", "O", "P"}) == outcome{"", 0});
    CHECK(run({"STOP"}, {"one STO"}) == outcome{"one STO", std::nullopt});
    CHECK(run({"STOP"}, {"STSTOP"}) == outcome{"ST", 0});
    CHECK(run({}, {"any", "thing"}) == outcome{"anything", std::nullopt});
}

TEST_CASE("the stop string that ends first wins, then the longest")
{
    CHECK(run({"abcd", "bc"}, {"xabcd"}) == outcome{"xa", 1});
    CHECK(run({"bc", "abc"}, {"xabcd"}) == outcome{"x", 1});
    CHECK(run({"c", "c"}, {"abc"}) == outcome{"ab", 0});
}

TEST_CASE("only what may begin a stop string is held back")
{
    std::vector<std::string> const stops{"\n\nUser:", "</s>"};
    stop_matcher m(stops);
    std::string out;
    m.push("hello\n", out);
    CHECK(out == "hello");
    m.push("world<", out);
    CHECK(out == "hello\nworld");
    m.push("/sx", out);
    CHECK(out == "hello\nworld</sx");
    m.push("\n\nUse", out);
    CHECK(out == "hello\nworld</sx");
    m.push("r:", out);
    CHECK(out == "hello\nworld</sx");
    CHECK(m.matched() == 0);
    m.push("more", out);
    m.finish(out);
    CHECK(out == "hello\nworld</sx");
}

TEST_CASE("a stop string that is empty or not UTF-8 is refused by number")
{
    for (auto const& bad : {std::string(), std::string("\xFF"), std::string("\xE4\xBD")}) {
        std::vector<std::string> const stops{"ok", bad};
        try {
            stop_matcher const m(stops);
            FAIL("accepted");
        } catch (error const& e) {
            CHECK(e.condition() == errc::invalid_argument);
            CHECK(std::string(e.what()).find("stop[1]") != std::string::npos);
        }
    }
}

TEST_CASE("any stop strings in any text cut anywhere do what the definition says")
{
    std::mt19937 random(3);
    auto const word = [&](std::size_t most, unsigned letters) {
        std::string out(1 + random() % most, 'a');
        for (auto& c : out)
            c = static_cast<char>('a' + random() % letters);
        return out;
    };
    std::size_t wrong = 0, found = 0;
    for (int round = 0; round < 20'000; ++round) {
        auto const letters = 1 + random() % 3;
        std::vector<std::string> stops(random() % 5);
        for (auto& stop : stops)
            stop = word(6, letters + 1);
        auto const text = word(30, letters + 1);
        stop_matcher m(stops);
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            auto const n = 1 + random() % 5;
            m.push(std::string_view(text).substr(at, n), out);
            at = std::min(text.size(), at + n);
            // What is held back is the shortest that must be: the longest suffix that begins a stop string.
            if (m.matched()) break;
            std::string const seen = text.substr(0, at);
            std::size_t held = 0;
            for (auto const& stop : stops) {
                for (std::size_t k = 1; k < stop.size(); ++k) {
                    if (std::string_view(seen).ends_with(std::string_view(stop).substr(0, k))) held = std::max(held, k);
                }
            }
            if (out + seen.substr(seen.size() - held) != seen) ++wrong;
        }
        m.finish(out);
        auto const expected = by_definition(stops, text);
        bool const same = out == expected.text && m.matched().has_value() == expected.stop.has_value() &&
                          (!m.matched() || stops[*m.matched()] == stops[*expected.stop]);
        if (!same) ++wrong;
        found += m.matched().has_value();
    }
    CHECK(wrong == 0);
    CHECK(found > 1000);
}
