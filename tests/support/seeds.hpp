#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <plait/actors/simulation/simulation.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/replay.hpp>

namespace plait::test {

/// How many seeds a test takes: `usual`, or `many` times as many where PLAIT_LONG asks for a long hunt.
inline std::uint64_t seeds(std::uint64_t usual, std::uint64_t many = 100)
{
    return environment("PLAIT_LONG") ? many * usual : usual;
}

/// Runs `body` in a simulation for `seeds(usual, many)` seeds, or for PLAIT_SEED alone. Fails with the first that
/// throws, and says with which command it does so again; so do the checks in `body`.
inline void check_seeds(std::function<void(simulation&)> const& body, std::uint64_t usual,
                        simulation_options const& options = {}, std::uint64_t many = 100)
{
    auto const* const one = environment("PLAIT_SEED");
    auto const first = one ? std::strtoull(one, nullptr, 10) : 1;
    auto const count = one ? 1 : seeds(usual, many);
    for (auto seed = first; seed < first + count; ++seed) {
        INFO(replay_command("PLAIT_SEED=" + std::to_string(seed)));
        auto const found = explore_seeds(body, seed, 1, options);
        CHECK_MESSAGE(!found.failure, describe(found));
        if (found.failure) return;
    }
}

/// The choices in PLAIT_CHOICES.
inline std::vector<std::uint32_t> given_choices(std::string const& text)
{
    std::vector<std::uint32_t> choices;
    for (std::size_t at = 0; at < text.size(); at = text.find_first_of("0123456789", text.find(',', at))) {
        if (text[at] < '0' || text[at] > '9') break;
        choices.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at))));
    }
    return choices;
}

/// Runs `body` in every order of its steps, of which there must be at most `most`, or in that of PLAIT_CHOICES alone.
/// Fails with the first that throws, and says with which command it does so again.
inline void check_orders(std::function<void(simulation&)> const& body, std::uint64_t most,
                         simulation_options const& options = {})
{
    if (auto const* const one = environment("PLAIT_CHOICES")) {
        CHECK_NOTHROW(replay(body, given_choices(one), options));
        return;
    }
    auto const found = explore_all(body, most, options);
    std::string choices;
    for (auto c : found.choices)
        choices += (choices.empty() ? "" : ",") + std::to_string(c);
    INFO(replay_command("PLAIT_CHOICES=" + (choices.empty() ? "none" : choices)));
    CHECK_MESSAGE(!found.failure, describe(found));
    CHECK((found.complete || found.failure));
}

} // namespace plait::test
