#include <plait/tests/support/temporary_folder.hpp>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace plait::test {

temporary_folder::temporary_folder()
{
    std::string name = (std::filesystem::temp_directory_path() / "plait-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("temporary_folder: cannot create " + name);
    path_ = name;
}

temporary_folder::~temporary_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path temporary_folder::write(std::string_view name, std::string_view content) const
{
    auto path = path_ / name;
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw std::runtime_error("temporary_folder: cannot write " + path.string());
    return path;
}

std::filesystem::path temporary_folder::write(std::string_view name, std::span<std::byte const> content) const
{
    return write(name, std::string_view(reinterpret_cast<char const*>(content.data()), content.size()));
}

} // namespace plait::test
