#pragma once

#include <filesystem>
#include <string>

namespace plait::chat {

/// The tools that a file offers: a JSON array. Throws error(errc::not_found), error(errc::io), and
/// error(errc::invalid_argument) for anything else and for more than 1 MiB; each names the file.
std::string read_tools(std::filesystem::path const& file);

} // namespace plait::chat
