#pragma once

#include <plait/tests/support/paths.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace plait::test {

/// What tests/data/scripts/make_tokenizer_kinds.py has written of all kinds.
inline nlohmann::json const& tokenizer_kinds()
{
    static nlohmann::json const value = nlohmann::json::parse(std::ifstream(test_data("tokenizer/kinds/kinds.json")));
    return value;
}

/// The folder of one.
inline std::filesystem::path tokenizer_kind(std::string const& name)
{
    return test_data("tokenizer/kinds/" + name);
}

/// Steele, Lea and Flood 2014: the numbers that the script makes its texts from.
class splitmix64 {
public:
    explicit splitmix64(std::uint64_t seed)
        : state_(seed)
    {
    }
    std::uint64_t operator()()
    {
        auto z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

private:
    std::uint64_t state_;
};

/// Text `number` of the script, less what is in `without`.
inline std::string kinds_text(std::uint64_t number, std::vector<std::string> const& without = {})
{
    static auto const fragments = tokenizer_kinds().at("fragments").get<std::vector<std::string>>();
    splitmix64 random(number);
    std::string out;
    for (auto n = random() % 24; n > 0; --n)
        out += fragments[random() % fragments.size()];
    for (auto const& name : without)
        for (auto at = out.find(name); at != std::string::npos; at = out.find(name, at))
            out.erase(at, name.size());
    return out;
}

} // namespace plait::test
