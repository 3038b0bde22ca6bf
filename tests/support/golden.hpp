#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace plait::test {

/// A file of named reference arrays, as tests/data/scripts/golden_file.py writes it (the layout is stated there).
/// Throws std::runtime_error that names the file and the array when something is not as expected.
class golden_file {
public:
    explicit golden_file(std::filesystem::path const& path)
        : path_(path.string())
        , data_(read(path))
    {
        static_assert(std::endian::native == std::endian::little);
        if (data_.size() < 16 || std::memcmp(data_.data(), "plaitgld", 8) != 0) {
            fail("not a golden file");
        }
        std::size_t at = 8;
        if (take<std::uint32_t>(at) != 1) {
            fail("unknown version");
        }
        for (auto count = take<std::uint32_t>(at); count != 0; --count) {
            auto const length = take<std::uint32_t>(at);
            if (length > data_.size() - at) {
                fail("truncated");
            }
            std::string name(reinterpret_cast<char const*>(data_.data()) + at, length);
            at += length;
            array a{.type = take<std::uint32_t>(at), .shape = {}, .offset = 0, .size = 1};
            for (auto rank = take<std::uint32_t>(at); rank != 0; --rank) {
                a.shape.push_back(static_cast<std::size_t>(take<std::uint64_t>(at)));
                a.size *= a.shape.back();
            }
            a.offset = static_cast<std::size_t>(take<std::uint64_t>(at));
            if (a.type > 3 || a.offset > data_.size() || a.size > (data_.size() - a.offset) / width(a.type)) {
                fail(name + ": out of the file");
            }
            arrays_.emplace(std::move(name), std::move(a));
        }
    }

    bool contains(std::string_view name) const { return arrays_.contains(name); }

    /// Lengths, slowest first.
    std::vector<std::size_t> const& shape(std::string_view name) const { return find(name).shape; }

    /// All elements, row-major. T is std::uint8_t, std::int32_t, float or double, as the array was written.
    template<class T>
    std::vector<T> values(std::string_view name) const
    {
        array const& a = find(name);
        if (a.type != type_of<T>()) {
            fail(std::string(name) + ": of another type");
        }
        std::vector<T> out(a.size);
        if (a.size != 0) {
            std::memcpy(out.data(), data_.data() + a.offset, a.size * sizeof(T));
        }
        return out;
    }

    /// An array of bytes as text.
    std::string text(std::string_view name) const
    {
        auto const bytes = values<std::uint8_t>(name);
        return {bytes.begin(), bytes.end()};
    }

private:
    struct array {
        std::uint32_t type;
        std::vector<std::size_t> shape;
        std::size_t offset; // in bytes from the start of the file
        std::size_t size;   // in elements
    };

    static std::vector<std::byte> read(std::filesystem::path const& path)
    {
        std::ifstream in(path, std::ios::binary);
        if (!in) {
            throw std::runtime_error(path.string() + ": cannot be opened");
        }
        std::vector<std::byte> out(static_cast<std::size_t>(std::filesystem::file_size(path)));
        in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
        if (!in) {
            throw std::runtime_error(path.string() + ": cannot be read");
        }
        return out;
    }

    static constexpr std::size_t width(std::uint32_t type)
    {
        constexpr std::size_t widths[] = {1, 4, 4, 8};
        return widths[type];
    }

    template<class T>
    static constexpr std::uint32_t type_of()
    {
        if constexpr (std::is_same_v<T, std::uint8_t>) {
            return 0;
        } else if constexpr (std::is_same_v<T, std::int32_t>) {
            return 1;
        } else if constexpr (std::is_same_v<T, float>) {
            return 2;
        } else {
            static_assert(std::is_same_v<T, double>);
            return 3;
        }
    }

    template<class T>
    T take(std::size_t& at) const
    {
        if (data_.size() - at < sizeof(T)) {
            fail("truncated");
        }
        T out;
        std::memcpy(&out, data_.data() + at, sizeof(T));
        at += sizeof(T);
        return out;
    }

    array const& find(std::string_view name) const
    {
        auto const found = arrays_.find(name);
        if (found == arrays_.end()) {
            fail(std::string(name) + ": no such array");
        }
        return found->second;
    }

    [[noreturn]] void fail(std::string const& why) const { throw std::runtime_error(path_ + ": " + why); }

    std::string path_;
    std::vector<std::byte> data_;
    std::map<std::string, array, std::less<>> arrays_;
};

} // namespace plait::test
