#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace plait::test {

/// `name` in the folder of models: $PLAIT_MODEL_DIR, or ~/.cache/plait where it is not set.
inline std::optional<std::filesystem::path> model_file(std::string_view name)
{
    std::filesystem::path folder;
    if (char const* const given = std::getenv("PLAIT_MODEL_DIR"); given != nullptr && *given != '\0') {
        folder = given;
    } else if (char const* const home = std::getenv("HOME"); home != nullptr) {
        folder = std::filesystem::path(home) / ".cache" / "plait";
    }
    auto const path = folder / name;
    if (!std::filesystem::is_regular_file(path)) return std::nullopt;
    return path;
}

/// Public data that is not part of the repository: below $PLAIT_SHARED_DATA, or ../shared/data beside the source.
/// A test prints "skipped: not found" where this is empty.
inline std::optional<std::filesystem::path> shared_data(std::string_view relative)
{
    std::filesystem::path folder = std::filesystem::path(PLAIT_SOURCE_DIR) / ".." / "shared" / "data";
    if (char const* const given = std::getenv("PLAIT_SHARED_DATA"); given != nullptr && *given != '\0') folder = given;
    auto const path = folder / relative;
    if (!std::filesystem::exists(path)) return std::nullopt;
    return path;
}

/// A file of tests/data, which is part of the repository.
inline std::filesystem::path test_data(std::string_view relative)
{
    return std::filesystem::path(PLAIT_SOURCE_DIR) / "tests" / "data" / relative;
}

} // namespace plait::test
