// libFuzzer target: the input is a config.json, then a zero byte and the header of a model.safetensors, whose data is
// as long as the header says, up to a limit.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <plait/actors/error.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/hf_directory.hpp>

using namespace plait;

namespace {

/// A folder that is gone when the program ends.
struct scratch {
    std::filesystem::path path;

    scratch()
    {
        // In memory, where the system has such a folder: several times as many inputs a second.
        std::filesystem::path const memory = "/dev/shm";
        auto const parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
        std::string name = (parent / "plait-fuzz-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path = name;
    }
    ~scratch() { std::filesystem::remove_all(path); }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
};

void write(std::filesystem::path const& path, std::string_view content)
{
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) std::abort();
}

/// Where the last tensor ends: the greatest number behind a comma and before a bracket.
std::uint64_t data_bytes(std::string_view header)
{
    constexpr std::uint64_t most = 1 << 20;
    std::uint64_t bytes = 0;
    for (auto at = header.find(','); at != header.npos; at = header.find(',', at + 1)) {
        std::uint64_t number = 0;
        auto const first = header.find_first_not_of(' ', at + 1);
        if (first == header.npos) break;
        char const* const last = header.data() + header.size();
        auto const [end, failed] = std::from_chars(header.data() + first, last, number);
        if (failed == std::errc() && end != last && *end == ']' && number <= most) bytes = std::max(bytes, number);
    }
    return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    static scratch const folder;
    std::string_view const all(reinterpret_cast<char const*>(data), size);
    auto const zero = std::min(all.find('\0'), size);
    auto const header = all.substr(std::min(zero + 1, size));
    auto const weights = folder.path / "model.safetensors";
    std::uint64_t const length = header.size();
    write(folder.path / "config.json", all.substr(0, zero));
    write(weights, std::string(reinterpret_cast<char const*>(&length), sizeof length) + std::string(header));
    std::filesystem::resize_file(weights, sizeof length + length + data_bytes(header));
    try {
        auto const model = describe(hf_directory::open(folder.path));
        to_string(model.spec);
        check(model.spec);
    } catch (error const&) {
        return 0;
    }
    return 0;
}
