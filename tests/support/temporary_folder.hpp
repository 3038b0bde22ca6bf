#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace plait::test {

/// A folder in the system's temporary folder with a name of its own, removed by the destructor with all that is in it.
class temporary_folder {
public:
    temporary_folder();
    ~temporary_folder();
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;

    std::filesystem::path const& path() const noexcept { return path_; }
    /// Writes a file of it; the path. Throws std::runtime_error where that fails.
    std::filesystem::path write(std::string_view name, std::string_view content) const;
    std::filesystem::path write(std::string_view name, std::span<std::byte const> content) const;

private:
    std::filesystem::path path_;
};

} // namespace plait::test
