#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace plait::test {

inline char const* environment(char const* name)
{
    char const* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

/// `name` in the folder of models: $PLAIT_MODEL_DIR, else the cache that apps/fetch-model fills: $PLAIT_CACHE, else
/// $XDG_CACHE_HOME/plait, else ~/.cache/plait. A test prints "skipped: not found" where this is empty.
inline std::optional<std::filesystem::path> model_file(std::string_view name)
{
    std::filesystem::path folder;
    if (auto const* const models = environment("PLAIT_MODEL_DIR")) {
        folder = models;
    } else if (auto const* const cache = environment("PLAIT_CACHE")) {
        folder = cache;
    } else if (auto const* const caches = environment("XDG_CACHE_HOME")) {
        folder = std::filesystem::path(caches) / "plait";
    } else if (auto const* const home = environment("HOME")) {
        folder = std::filesystem::path(home) / ".cache" / "plait";
    }
    auto path = folder / name;
    if (!std::filesystem::is_regular_file(path)) return std::nullopt;
    return path;
}

/// Public data that is not part of the repository: below $PLAIT_SHARED_DATA, or ../shared/data beside the source.
/// A test prints "skipped: not found" where this is empty.
inline std::optional<std::filesystem::path> shared_data(std::string_view relative)
{
    std::filesystem::path folder = std::filesystem::path(PLAIT_SOURCE_DIR) / ".." / "shared" / "data";
    if (auto const* const given = environment("PLAIT_SHARED_DATA")) folder = given;
    auto path = folder / relative;
    if (!std::filesystem::exists(path)) return std::nullopt;
    return path;
}

/// A file of tests/data, which is part of the repository.
inline std::filesystem::path test_data(std::string_view relative)
{
    return std::filesystem::path(PLAIT_SOURCE_DIR) / "tests" / "data" / relative;
}

} // namespace plait::test
